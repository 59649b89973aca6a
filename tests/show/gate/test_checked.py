"""A run that was checked: what became of each finding, what failed, and what is left alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from dig.detectors import standard
from dig.detectors.policy import Policy, Rule
from dig.detectors.protocols import Detector
from dig.detectors.watch import DISABLED
from dig.errors import TraceError
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record
from dig.show.gate.checked import CheckedRun, check_run, runs_in
from dig.show.gate.junit import junit_lines
from dig.show.gate.quality_gate import QualityGate
from dig.show.gate.reports import CheckReport, github_lines, text_lines
from tests.histories import arrive, deliver, final, row, trace, turn
from tests.oracle import Row
from tests.oracle_mended import mended, unhealed
from tests.strategies import traces
from tests.traces.journals import story, write
from tests.traces.runs import directory, hasty, solved, store


def checked(path: Path) -> CheckedRun:
    return check_run(path, standard())


def early(*more: Row, **silenced: Any) -> list[Row]:
    """`a` answers `p` without having used it; the finding is recorded, with these keys."""
    return trace(
        arrive(0, "p", None, "ab"),
        *more,
        turn(1, "v", "a", "f", p="delay"),
        final(1, "f", "v"),
        row(1, "finding", pattern="ET", stage=None, subject={"event": "f"},
            evidence={"unresolved": ["p"], "uncovered": []}, **silenced),
        deliver(1, "f", None),
        row(1, "finish", outcome="submitted"),
    )  # fmt: skip


@given(rows=traces())
def test_what_is_mended_and_unhealed_is_what_the_oracle_says(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    """In the order of the findings, on random traces."""
    path = store(tmp_path_factory.mktemp("r") / "t.dig.jsonl", rows)
    found = checked(path).findings
    assert [one.is_mended for one in found] == mended(rows)
    assert [json.loads(json.dumps(o.finding.row())) for o in found if o.is_unhealed] == unhealed(
        rows
    )


def test_a_recorded_row_gives_its_reason_for_silence_to_the_equal_finding(tmp_path: Path) -> None:
    """The finding is raised again from the records; only the reason comes from the row."""
    (one,) = checked(store(tmp_path / "t.dig.jsonl", early(silenced="known to the team"))).findings
    assert (one.finding.silenced, one.is_unhealed) == ("known to the team", False)
    (one,) = checked(store(tmp_path / "t.dig.jsonl", early())).findings
    assert (one.finding.silenced, one.is_unhealed) == (None, True)


def test_a_policy_silences_what_the_run_did_not(tmp_path: Path) -> None:
    """A reason that the run has recorded stands before that of the policy."""
    path, silent = tmp_path / "t.dig.jsonl", tmp_path / "s.dig.jsonl"
    store(path, early())
    store(silent, early(silenced="known to the team"))

    def reason(file: Path, agent: str, action: Any = "off") -> str | None:
        rule = Rule(action=action, pattern="ET", agents=(agent,), reason="drafts are fine")
        (one,) = check_run(file, standard(), policy=Policy((rule,))).findings
        assert one.is_unhealed is (one.finding.silenced is None)
        return one.finding.silenced

    assert (reason(path, "a"), reason(path, "b")) == ("drafts are fine", None)
    assert reason(path, "a", "observe") is None
    assert reason(silent, "a") == "known to the team"


def test_a_row_about_another_subject_silences_nothing(tmp_path: Path) -> None:
    """A reason belongs to one finding."""
    rows = early(silenced="known")
    rows[[r["kind"] for r in rows].index("finding")]["subject"] = {"event": "p"}
    (one,) = checked(store(tmp_path / "t.dig.jsonl", rows)).findings
    assert one.finding.silenced is None


def test_healing_is_found_by_the_row_that_it_names(tmp_path: Path) -> None:
    """A `heal` row names the row of kind `finding`, and the finding goes by another record."""
    (one, *_) = checked(directory(tmp_path, "r", hasty())).findings
    assert (one.finding.t, [row.note for row in one.heals]) == (11, ["q is open"])


class Broken(Detector):
    """Raises an exception at every record."""

    pattern = "BROKEN"

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Any]:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "more", [{"what": "slow", "place": 0, "off_s": 60}, {"what": f"raised X; {DISABLED}"}]
)
def test_a_run_in_which_a_detector_was_off_fails_the_check(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    """What it would have found there, nobody was told of; the reason is its own."""
    failed = row(0, "incident", what="failed", detail={"who": "detector ET", **more})
    run = checked(store(tmp_path / "t.dig.jsonl", early(failed, silenced="known")))
    assert run.off == ["detector ET"]
    verdict = QualityGate().judge(run)
    assert verdict.fails
    assert verdict.reasons == "detector ET was off"
    report = CheckReport([verdict])
    assert report.status == 1
    for lines in (text_lines, github_lines, junit_lines):
        assert "detector ET was off" in "\n".join(lines(report))
    assert "::error" in "\n".join(github_lines(report))


def test_a_part_that_failed_and_went_on_does_not_fail_the_check(tmp_path: Path) -> None:
    """It is told of, as before."""
    failed = row(0, "incident", what="failed", detail={"who": "detector ET", "what": "raised X"})
    run = checked(store(tmp_path / "t.dig.jsonl", early(failed, silenced="known")))
    assert not QualityGate().judge(run).fails


def test_a_trace_cannot_turn_off_the_detectors_of_its_check(tmp_path: Path) -> None:
    """They find what happened in the run, whatever its incidents say."""
    for place in range(13):
        detail = {"who": "x", "what": "y", "place": place, "off_s": 60}
        rows = early(row(0, "incident", what="failed", detail=detail))
        assert checked(store(tmp_path / "t.dig.jsonl", rows)).findings


def test_what_failed_in_the_run_and_in_the_check_is_kept_by_part(tmp_path: Path) -> None:
    """A detector that is disabled after three failures is told of with all three."""
    failed = row(3, "incident", what="failed", detail={"who": "healer ET", "what": "raised X"})
    other = row(3, "incident", what="downgraded", detail={})
    rows = trace(arrive(0, "p", None, "ab"), turn(1, "v", "a", p="delay"), failed, other)
    run = check_run(store(tmp_path / "t.dig.jsonl", rows), [Broken()])
    assert run.failures["healer ET"] == ["raised X"]
    assert len(run.failures["detector BROKEN, here"]) == 3
    assert "disabled" in run.failures["detector BROKEN, here"][-1]
    assert run.incidents == {"downgraded": 1}


def test_recorded_findings_of_detectors_that_are_not_here_are_counted(tmp_path: Path) -> None:
    """They cannot be raised again, and are not passed over in silence."""
    own = row(2, "finding", pattern="SILENT", stage=None, subject={}, evidence={})
    run = checked(store(tmp_path / "t.dig.jsonl", trace(arrive(0, "p", None, "a"), own, own)))
    assert run.not_found == {"SILENT": 2}


def test_only_a_journal_that_nobody_writes_was_cut_off(tmp_path: Path) -> None:
    """Of a plain trace without an end nobody knows; a locked journal is going on."""
    assert checked(directory(tmp_path, "r", hasty())).state == "in progress"
    assert checked(directory(tmp_path, "s", solved())).state == "ended"
    path = write(tmp_path, story()[:4])
    assert checked(path).state == "cut off"
    fcntl = pytest.importorskip("fcntl")
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert checked(path).state == "in progress"


def test_a_torn_end_is_measured_and_left_where_it_is(tmp_path: Path) -> None:
    """No byte of the folder changes."""
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    run = checked(path)
    assert (run.torn, run.records, run.state) == (
        len(path.read_bytes().splitlines()[-1]), 7, "cut off",
    )  # fmt: skip
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


def test_a_directory_stands_for_the_runs_in_it(tmp_path: Path) -> None:
    """In order of their names, each once; an empty one is an error."""
    one, two = directory(tmp_path, "a", solved()), directory(tmp_path, "b", hasty())
    assert runs_in([tmp_path, two]) == [one, two]
    assert runs_in([one / "trace.dig.jsonl"]) == [one / "trace.dig.jsonl"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="there is no run in it"):
        runs_in([tmp_path / "empty"])
