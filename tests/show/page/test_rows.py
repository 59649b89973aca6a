"""Records as the rows that the page is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from dig.errors import RuleError
from dig.graph.codec import decode
from dig.show.explain.facts import show
from dig.show.page.rows import MOST_IDS, MOST_TEXT, Row, Rows, shorten
from tests.histories import arrive, emit, end, row, start, trace, turn
from tests.oracle import Row as Line
from tests.strategies import traces
from tests.traces.runs import hasty, store


def told(lines: list[Line], most: int = MOST_TEXT) -> list[Row]:
    rows = Rows(most)
    return [rows.of(decode(line)) for line in lines]


@given(traces())
def test_every_record_is_a_row_and_keeps_what_the_graph_follows_from(lines: list[Line]) -> None:
    """In order, with the keys of the trace file: the page's graph is that of the trace."""
    shown = told(lines)
    assert [(one["t"], one["kind"]) for one in shown] == [(one["t"], one["kind"]) for one in lines]
    keys = ("event", "by", "to", "type", "final", "activation", "agent", "inputs", "outputs")
    for one, line in zip(shown, lines, strict=True):
        for key in keys:
            got = one.get(key)
            assert (list(got) if isinstance(got, tuple) else got) == line.get(key)


def test_a_finding_is_explained_as_show_explains_it(tmp_path: Path) -> None:
    """The same reason, the same paths, whom it names, and what healing did."""
    found = show(store(tmp_path / "r.dig.jsonl", hasty()), "12")
    shown = {one["t"]: one for one in told(hasty())}
    finding = shown[12]
    assert (finding["says"], finding["why"]) == (found["says"], found["why"])
    assert finding["paths"] == found["paths"]
    assert (finding["severity"], finding["ids"]) == ("error", ["f", "q"])
    assert shown[13]["says"] == found["healing"][0]["says"]


def test_a_warning_is_no_error() -> None:
    """Only what the paper calls errors are; a pattern of a user's own is a warning."""
    lines = trace(row(1, "finding", pattern="ZZ", stage=None, subject={}, evidence={}))
    assert told(lines)[-1]["severity"] == "warning"


@pytest.mark.parametrize("most", [0, MOST_TEXT])
def test_a_page_without_payloads_has_no_question_and_no_lines_of_code(most: int) -> None:
    asks = {"activation": "a1", "asks": "Smith?", "answer": "Smith"}
    lines = trace(
        row(1, "incident", what="waits", detail=asks),
        row(2, "incident", what="stack trace", detail={"activation": "a1", "text": "Smith()"}),
    )
    shown = [one["says"] for one in told(lines, most)[-2:]]
    assert ["Smith" in says for says in shown] == [most > 0] * 2
    assert all("a1" in says for says in shown)


def test_a_part_of_the_monitor_that_failed_is_named() -> None:
    """So that the page can show it; other incidents name none."""
    failed = {"who": "detector X", "what": "raised KeyError('e1')"}
    lines = trace(
        row(1, "incident", what="failed", detail=failed),
        row(2, "incident", what="waits", detail={"event": "e1"}),
    )
    shown = told(lines)
    assert shown[1]["failed"] == "detector X"
    assert shown[1]["says"] == "detector X failed: raised KeyError('e1')"
    assert "failed" not in shown[2]


def test_an_outage_has_a_mark() -> None:
    """A change of the owner, but not the first owner; and the time that the clock stood still."""
    details = [("owner", 0.1), ("owner", 11.43), ("disconnected", 4.0), ("skew", 2.5)]
    lines = [
        row(t, "incident", what=what, detail={"down_s": down_s})
        for t, (what, down_s) in enumerate(details, 1)
    ]
    marks = [line.get("mark") for line in told(trace(*lines))[1:]]
    assert marks == [None, "new owner after 11.4 s", "server back after 4.0 s", None]


def test_a_finding_is_worth_what_its_record_says() -> None:
    """Not what its pattern is worth in general; a silenced one says why."""
    body: dict[str, Any] = {"pattern": "ET", "stage": None, "subject": {}, "evidence": {}}
    quiet = {"severity": "notice", "silenced": "it is a drill"}
    *_, usual, told_so = told(trace(row(1, "finding", **body), row(2, "finding", **body, **quiet)))
    assert (usual["severity"], usual["silenced"]) == ("error", None)
    assert (told_so["severity"], told_so["silenced"]) == ("notice", "it is a drill")


def test_repeats_are_alike_and_others_are_not() -> None:
    """Findings of one pattern and stage about the same agents and types of events."""

    def finding(n: int, event: str) -> Line:
        return row(n, "finding", pattern="OE", stage=None, subject={"event": event}, evidence={})

    lines = trace(
        arrive(0, "p", None, "ab"),
        turn(1, "v", "a", "x y", p="consume"), emit(2, "x", "v"), emit(2, "y", "v"),
        finding(3, "x"), finding(4, "y"), finding(5, "p"),
    )  # fmt: skip
    x, y, p = (one["like"] for one in told(lines) if one["kind"] == "finding")
    assert x == y != p


def test_a_trace_that_tells_of_no_findings_is_looked_at_again() -> None:
    """What the standard detectors find is told apart from what a trace records."""
    lines = [line for line in hasty() if line["kind"] not in ("finding", "heal")]
    rows = Rows()
    for t, line in enumerate(lines):
        rows.of(decode({**line, "t": t}))
    assert not rows.has_findings
    assert [(one["pattern"], one["found"]) for one in rows.detected] == [("ET", True)]


@pytest.mark.parametrize("evidence", [None, 7, "x", [["y"]], {"a": {"b": [1]}}])
def test_a_finding_may_be_of_any_shape(evidence: Any) -> None:
    """Detectors of a user's own are shown, whatever they wrote."""
    row_ = row(1, "finding", pattern=7, stage={}, subject=evidence, evidence=evidence)
    finding = told(trace(row_))[-1]
    assert isinstance(finding["pattern"], str) and isinstance(finding["why"], str)


def test_very_long_evidence_is_cut() -> None:
    """Findings that list thousands of events do not make a report that nobody can open."""
    names = [f"e{i}" for i in range(2 * MOST_IDS)]
    evidence = {"waiting": {"a": names}}
    raised = row(1, "finding", pattern="DL", stage=None, subject={}, evidence=evidence)
    shown = told(trace(*(arrive(0, one, None, "a") for one in names), raised))
    assert shown[-1]["ids"] == ["a", *names][:MOST_IDS]


def test_payloads_are_cut_and_their_length_is_told() -> None:
    """A text as it is, all else as JSON."""
    lines = trace(arrive(0, "p", None, "a"), arrive(0, "q", None, "a"))
    lines[1]["payload"], lines[3]["payload"] = "x" * 5_000, {"a": [1, "é"]}
    shown = told(lines)
    assert (len(shown[1]["payload"]), shown[1]["chars"]) == (MOST_TEXT, 5_000)
    assert shown[3]["payload"] == '{"a": [1, "é"]}'


def test_without_payloads_nothing_that_was_said_is_left() -> None:
    """Neither a payload, nor an answer, nor an error that may quote one."""
    failed = end(1, "v", p="delay") | {"error": "SECRET"}
    lines = trace(
        arrive(0, "p", None, "a"),
        [start(1, "v", "a", "p"), failed],
        row(2, "finish", outcome="stopped", answer="SECRET"),
    )
    lines[1]["payload"] = "SECRET"
    assert "SECRET" not in str(told(lines, 0))
    assert "SECRET" in str(told(lines))


def test_payloads_are_shortened_to_a_budget() -> None:
    """All to the same length, which is told."""
    shown: list[Row] = [{"payload": "x" * 1_000} for _ in range(10)] + [{"t": 0}]
    most, _ = shorten(shown, 3_000)
    assert 200 <= most <= 300
    assert {len(one["payload"]) for one in shown if "payload" in one} == {most}


def test_what_breaks_a_rule_is_refused() -> None:
    """The graph behind the rows is that of the reducer."""
    with pytest.raises(RuleError):
        told([*trace(), row(1, "deliver", event="x", to="a") | {"t": 1}])


def test_usage_that_is_very_long_is_left_out() -> None:
    """What a run cost is a few figures."""
    lines = trace(arrive(0, "p", None, "a"), turn(1, "v", "a", p="delay"))
    lines[-1]["usage"] = {"raw": "x" * 50_000}
    assert "usage" not in told(lines)[-1]
