"""Who works on after the end of its request is told of an imported run, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dig.detectors import standard
from dig.graph.records import WORK_AFTER_ANSWER, IncidentRow
from dig.show.gate.checked import check_run
from dig.show.gate.quality_gate import QualityGate
from dig.show.gate.reports import CheckReport, text_lines
from dig.traces.interchange.imports import import_file, save

from .coding import Talk, background, foreground, store, subagent


def late(path: Path) -> list[Any]:
    records = import_file(path).records
    rows = [record for record in records if isinstance(record, IncidentRow)]
    return [row.detail for row in rows if row.what == WORK_AFTER_ANSWER]


def test_a_worker_that_reports_after_the_answer_worked_on(tmp_path: Path) -> None:
    """By the rules of a message log it is at work until it reports."""
    path = tmp_path / "chat.csv"
    rows = ["id,from,to,at,reply_to", "q,user,lead,0,", "a,lead,ann;cyd,1,q", "b,ann,lead,3,a",
            "c,lead,user,4,b"]  # fmt: skip
    path.write_text("\n".join([*rows, "d,cyd,lead,60,a"]))
    assert late(path) == [{"event": "q", "activation": "turn-3", "agent": "cyd"}]
    assert check_run(save(import_file(path), tmp_path / "run"), standard()).remarks == [
        "`cyd` still worked at 60.0 s, after its request was over (turn-3)."
    ]
    path.write_text("\n".join([*rows, "d,cyd,lead,4.5,a"]))
    assert late(path) == []


def test_a_subagent_that_outlives_its_session_is_told(tmp_path: Path) -> None:
    """It reads on for nobody; one that is waited for, or ends in time, is not told."""
    main = Talk().user("Look").spawn("c1", "Look", run_in_background=True).launched("c1", "a1")
    path = store(tmp_path / "1", main.say("Done."), subagent("a1", "Do: Look", 100))
    assert [detail["agent"] for detail in late(path)] == ["Explore"]
    assert late(foreground(tmp_path / "2")) == late(background(tmp_path / "3", 5, 0)) == []


def test_a_search_says_it_of_a_quiet_run_too(tmp_path: Path) -> None:
    """Below the line that says that the run passes."""
    main = Talk().user("Look").spawn("c1", "Look", run_in_background=True).launched("c1", "a1")
    early = main.use("r", "Read", file_path="/tmp/tasks/a1.output").result("r", "..").say("Done.")
    run = check_run(store(tmp_path, early, subagent("a1", "Do: Look", 100)), [])
    lines = [*text_lines(CheckReport([QualityGate().judge(run)], skipped={}))]
    assert lines[0].startswith(f"{run.path}: passes") and lines[1] == f"  {run.remarks[0]}"
