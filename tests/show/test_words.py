"""Findings and results in words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig._util.text import MOST_IN_TEXT
from dig.detectors import describe
from dig.detectors.finding import Finding
from dig.detectors.patterns import NAMES
from dig.graph import words
from dig.graph.records import FindingRow, HealRow, IncidentRow
from dig.runtime.result import Left, RunResult
from dig.show import summary_text

HOSTILE = "\x1b[31m\x07\u202eevil\n[bold]no[/bold]\r\t\x9b"

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(HOSTILE),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
    max_leaves=20,
)


def finding(pattern: str, subject: Any, evidence: Any, stage: str | None = None) -> Finding:
    return Finding(pattern, 41, 12_500_000, subject, evidence, stage)


def is_safe_line(text: str) -> bool:
    return not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.parametrize(
    ("unresolved", "uncovered", "said"),
    [
        (["e4", "e5"], [], "still open: e4, e5"),
        ([], ["e2"], "lost on the way to it: e2"),
        (["e4"], ["e2"], "still open: e4; lost on the way to it: e2"),
    ],
)
def test_an_early_termination_says_what_is_missing(
    unresolved: list[str], uncovered: list[str], said: str
) -> None:
    """The sentence names the answer, and only the lists that are not empty."""
    early = finding("ET", {"event": "e9"}, {"unresolved": unresolved, "uncovered": uncovered})
    assert describe.finding_line(early) == (
        f"warning ET at 12.5 s (record 41): answer e9 was submitted too early; {said}"
    )


def test_a_deadlock_says_who_holds_what() -> None:
    """In a session the sentence also names the problem."""
    waiting = {"waiting": {"ann": ["e4", "e5"], "bob": ["e6"]}}
    held = "ann holds e4, e5; bob holds e6"
    assert describe.finding_text(finding("DL", {}, waiting)) == (
        f"work is waiting, and nobody makes progress: {held}"
    )
    assert describe.finding_text(finding("DL", {"event": "e1"}, waiting)) == (
        f"work is waiting, and nobody makes progress on e1: {held}"
    )


@pytest.mark.parametrize(
    ("pattern", "subject", "evidence", "told"),
    [
        ("MC", {}, {"last": "a7"}, "nobody submits an answer; the last to work was a7"),
        ("MC", {"event": "e1"}, {"last": None}, "lost on e1, and nobody submits"),
        ("OE", {"event": "e3"}, {"cause": "discarded"}, "consumed e3, and nobody can any more"),
        ("ER", {"event": "e3"}, {"path": ["ann", "bob"]}, "passed on 2 times and not consumed"),
        ("CLA", {"event": "e3", "agent": "ann"}, {"conflicts": ["e1"]}, "came to ann beside e1"),
        ("CLA", {"activation": "a7"}, {"conflicts": [["e1", "e2"]]}, "put together e1 with e2"),
        (
            "RSP",
            {"activation": "a7"},
            {"shared": [{"event": "e1", "activations": ["a2"]}]},
            "a7 solved again e1 after a2",
        ),
    ],
)
def test_every_pattern_is_put_into_words(
    pattern: str, subject: dict[str, Any], evidence: dict[str, Any], told: str
) -> None:
    assert told in describe.finding_text(finding(pattern, subject, evidence))


def test_other_patterns_are_told_by_what_they_are_about() -> None:
    """A pattern that nobody has put into words is shown with its subject and its evidence."""
    silent = finding("SILENT", {"agent": "ann"}, {"for": [["e1", "e2"]]}, "late")
    assert describe.finding_line(silent) == (
        "warning SILENT late at 12.5 s (record 41): about agent ann; for: (e1, e2)"
    )
    assert (
        describe.finding_text(finding("SILENT", {}, {"last": None})) == "about the run; last: None"
    )


def test_a_finding_says_what_it_is_worth_and_why_it_is_no_alarm() -> None:
    """A recorded one as its record says; one of an old trace as its pattern does."""
    quiet = replace(finding("ET", {"event": "e9"}, {}), severity="error", silenced="it is a drill")
    assert describe.finding_line(quiet).startswith("silenced ET at 12.5 s (record 41): ")
    assert describe.finding_line(quiet).endswith(" (silenced: it is a drill)")
    rows = [FindingRow(8, 0, "ET", None, {}, {}, severity) for severity in ("notice", None, "odd")]
    assert [describe.worth(row) for row in rows] == ["notice", "error", "error"]
    counts = {"error": 2, "silenced": 1, "notice": 1}
    assert describe.counts_text(counts) == "2 errors, 1 notice, 1 silenced"


def test_long_lists_are_cut() -> None:
    """A sentence stays a line, however much is missing."""
    lists = {"unresolved": [f"e{n}" for n in range(5000)], "uncovered": ["x" * 1000] * 5000}
    assert "e5 and 4994 more" in describe.finding_text(finding("ET", {"event": "e9"}, lists))
    waiting = {f"agent-{n}": [f"e{n}"] * 50 for n in range(100)}
    sentence = describe.finding_line(finding("DL", {}, {"waiting": waiting}))
    assert len(sentence) <= MOST_IN_TEXT + 80


@given(
    st.sampled_from([*NAMES, HOSTILE]),
    anything,
    anything,
    st.none() | st.text(),
)
def test_no_finding_is_too_strange(
    pattern: str, subject: Any, evidence: Any, stage: str | None
) -> None:
    """Whatever a detector of a user's own raises becomes one line without control characters."""
    assert is_safe_line(describe.finding_line(finding(pattern, subject, evidence, stage)))


@given(st.sampled_from(["inject", "reroute", "create", "refused", HOSTILE]), anything, anything)
def test_no_side_row_is_too_strange(action: str, what: Any, to: Any) -> None:
    """The same goes for what healing did, and for incidents."""
    assert is_safe_line(words.healing_text(HealRow(3, 0, 2, action, what, to, what, what)))
    assert is_safe_line(words.incident_text(IncidentRow(3, 0, HOSTILE, what)))


def test_a_failed_part_is_told_by_name() -> None:
    """An incident about a detector reads like a sentence."""
    row = IncidentRow(3, 0, "failed", {"who": "detector ET", "what": "raised KeyError('e1')"})
    assert words.incident_text(row) == "detector ET failed: raised KeyError('e1')"


def result(**changed: Any) -> RunResult:
    usual: dict[str, Any] = {
        "outcome": "submitted",
        "reason": "an answer was accepted",
        "answer": {"counts": {"0": 12}},
        "seconds": 98.31,
        "records": 1412,
        "events": 2,
        "activations": 1,
        "failures": {},
        "findings": (),
        "heals": {},
        "left": Left((), (), {}, {}),
    }
    return RunResult(**{**usual, **changed})


def test_a_good_run_is_short_to_tell() -> None:
    """What the five answers say is not said again, and what was left takes a line."""
    rows = dict(summary_text.summary(result(), Path("runs/x y")))
    assert rows == {
        "outcome": "submitted: an answer was accepted",
        "answer": '{"counts": {"0": 12}}',
        "left": "nothing: all work was consumed",
        "trace": "runs/x y/trace.dig.jsonl",
        "result": "runs/x y/result.json",
    }


def test_a_bad_run_is_told_in_full() -> None:
    """Nothing that was left is silent."""
    left = Left(("e7",), ("e7", "e8"), {"e1": "left", "e2": "discarded", "e3": "left"}, {"a9": "b"})
    rows = dict(
        summary_text.summary(
            result(
                outcome="timeout", answer=None, left=left,
            ),
        )
    )  # fmt: skip
    assert rows["answer"] == "none"
    assert rows["undelivered"] == "e7"
    assert rows["unconsumed"] == "e7, e8"
    assert rows["orphaned"] == "2 left (e1, e3); 1 discarded (e2)"
    assert rows["unfinished"] == "a9 of b"
    assert "left" not in rows


@given(anything)
def test_no_answer_is_too_strange(answer: Any) -> None:
    """An answer is cut to a line, whatever it holds."""
    rows = dict(summary_text.summary(result(answer=answer, reason=HOSTILE)))
    assert all(map(is_safe_line, rows.values()))
    assert len(rows["answer"]) <= 200
