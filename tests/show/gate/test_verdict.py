"""What fails a check: levels, what is ignored, and what is known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dig.detectors import standard
from dig.detectors.finding import FindingKind
from dig.errors import SettingsError
from dig.show.gate.checked import check_run
from dig.show.gate.known_findings import KnownFindings, write_baseline
from dig.show.gate.quality_gate import Ignored, Level, QualityGate, RunVerdict
from tests.histories import arrive, deliver, final, row, trace, turn
from tests.oracle import Row
from tests.show.gate.test_checked import early
from tests.traces.runs import solved, store

PATTERNS = ("ET", "RSP", "CLA")


def judged(path: Path, rows: list[Row], **gate: Any) -> RunVerdict:
    run = check_run(store(path / "t.dig.jsonl", rows), standard())
    return QualityGate(**gate).judge(run)


def mended() -> list[Row]:
    """`a` answers too early, then again when `p` was used: an error that was mended."""
    return trace(
        arrive(0, "p", None, "a"),
        turn(1, "v", "a", "f", p="delay"),
        final(1, "f", "v"),
        row(1, "redirect", event="f", to=["a"]),
        deliver(1, "f", "a"),
        turn(2, "w", "a", "g", p="consume", f="consume"),
        final(2, "g", "w"),
        deliver(2, "g", None),
        row(2, "finish", outcome="submitted"),
    )


def repeated() -> list[Row]:
    """`a` and `b` both solve `p`: a notice."""
    return trace(
        arrive(0, "p", None, "ab"),
        turn(1, "v", "a", "q", p="consume"),
        arrive(1, "q", "v", "c"),
        turn(1, "w", "b", "r", p="consume"),
        arrive(1, "r", "w", "b"),
        turn(2, "y", "b", r="consume"),
        turn(2, "x", "c", "f", q="consume"),
        final(2, "f", "x"),
        deliver(2, "f", None),
        row(2, "finish", outcome="submitted"),
        limits={"coverage": False},
    )


@pytest.mark.parametrize(
    ("rows", "levels"),
    [
        (solved(), ""),
        (repeated(), "notice"),
        (mended(), "error warning notice"),
        (early(), "unhealed error warning notice"),
        (early(silenced="by a policy"), ""),
    ],
    ids=["good", "notice", "mended", "unhealed", "silenced"],
)
def test_each_level_fails_what_it_says(tmp_path: Path, rows: list[Row], levels: str) -> None:
    """Unhealed errors, then all errors, all alarms, and all findings; never what is silenced."""
    all_levels: tuple[Level, ...] = ("unhealed", "error", "warning", "notice")
    failed = [level for level in all_levels if judged(tmp_path, rows, fail_on=level).fails]
    assert failed == levels.split()


def test_a_pattern_is_ignored_or_only_where_an_agent_takes_part(tmp_path: Path) -> None:
    """The agent is named by the subject, by the evidence, or sent an event that they name."""
    for text, fails in (("ET", False), ("ET=a", False), ("ET=b", True), ("RSP", True)):
        ignored = [Ignored.of(text, PATTERNS)]
        verdict = judged(tmp_path, early(), ignored=ignored)
        assert verdict.fails is fails, text
        (group,) = verdict.groups
        assert group.set_aside == (None if fails else f"ignored: --ignore {text}")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("EF", "there is no pattern 'EF'; did you mean ET?"),
        ("rsp", "there is no pattern 'rsp'; did you mean RSP?"),
        ("nothing", "there is no pattern 'nothing'; known are: ET, RSP, CLA"),
        ("ET=", "name an agent after the ="),
    ],
)
def test_a_pattern_that_is_none_cannot_be_ignored(text: str, what: str) -> None:
    """A misspelt name would let everything fail, or nothing."""
    with pytest.raises(SettingsError, match=re.escape(what)):
        Ignored.of(text, PATTERNS)


def test_what_was_written_as_known_does_not_fail_in_a_run_with_other_ids(tmp_path: Path) -> None:
    """A baseline names no ids; a finding about another agent still fails."""
    path = tmp_path / "known.json"
    groups = judged(tmp_path, early()).groups
    assert write_baseline(path, [group.kind for group in groups]) == 1
    (known,) = json.loads(path.read_text())["known"]
    types = ["problem", "solution"]
    assert known == {"pattern": "ET", "stage": None, "agents": ["a"], "types": types}

    def again(**names: str) -> RunVerdict:
        text = json.dumps(early())
        for old, new in names.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        return judged(tmp_path, json.loads(text), baseline=KnownFindings.read(path))

    verdict = again(f="g", p="problem-7", v="v-2")
    assert (verdict.fails, verdict.groups[0].set_aside) == (False, "known: in the baseline")
    assert again(a="z").fails


def test_an_entry_fits_what_concerns_fewer_agents_and_no_others(tmp_path: Path) -> None:
    """So does a baseline of ten runs fit the eleventh; an entry that another covers is left out."""
    wide = FindingKind("ET", None, ("a", "b"), ("m", "p"))
    assert wide.has(FindingKind("ET", None, ("a",), ("m",)))
    for other in (
        FindingKind("ET", None, ("a", "c"), ("m",)),
        FindingKind("ET", None, ("a",), ("x",)),
        FindingKind("ET", "delivery", ("a",), ("m",)),
        FindingKind("OE", None, ("a",), ("m",)),
    ):
        assert not wide.has(other)
    narrow = FindingKind("ET", None, ("a",), ("m",))
    assert write_baseline(tmp_path / "b.json", [narrow, wide, narrow]) == 1
    assert KnownFindings.read(tmp_path / "b.json").known == (wide,)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "is not JSON"),
        ("[]", "is no baseline"),
        ('{"version": 2, "known": []}', "is no baseline at version"),
        ('{"version": 1, "known": [{"pattern": "ET"}]}', "is no baseline at known.0.agents"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused_with_place_and_cure(
    tmp_path: Path, text: str, what: str
) -> None:
    """The message says how such a file is made."""
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=f"{what}.*--write-baseline FILE` makes such a file"):
        KnownFindings.read(path)


def test_equal_findings_are_one_group_with_a_number(tmp_path: Path) -> None:
    """So a report does not grow with repeats; the worst group stands first."""
    turns = [
        part
        for i in range(2, 40)
        for part in (
            *turn(i, f"v{i}", "a", f"f{i}", p="delay"),
            final(i, f"f{i}", f"v{i}"),
            row(i, "redirect", event=f"f{i}", to=["b"]),
        )
    ]
    rows = trace(arrive(0, "p", None, "a"), turns, limits={"loop_limit": None})
    (group,) = [one for one in judged(tmp_path, rows).groups if one.kind.pattern == "ET"]
    assert (group.count, group.fails) == (38, True)
    assert judged(tmp_path, rows).groups[0].fails
