"""Resumes a run after the end of its process, in the same directory and journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dig.errors import SettingsError
from dig.graph.records import Emit, Record
from dig.monitor.sinks import FanOut, Sink
from dig.runtime.resume import Resumption
from dig.runtime.resume import resume as resume_lines
from dig.runtime.setup import REAL_TIME, Setup
from dig.show.page.about import clock_speed
from dig.traces.journal.exchanges import exchanges
from dig.traces.journal.journal import KEEPING, UNREPLAYABLE, Keeping, RunDirectory, read_side
from dig.traces.journal.recovery import recover, whole_requests
from dig.traces.journal.segments import segments, trace_path
from dig.traces.replay.rerun import setup_of
from dig.traces.replay.tape import RecordedLines, read_requests

from .arrange import Disturbance
from .crew import Crew, task_tools
from .execute import Execution, resume
from .measures import Counts, with_mistakes
from .methods import Arrangement
from .teams import in_virtual_time, models


def resume_run(
    run: Path,
    crew: Crew,
    *,
    disturb: Callable[[Arrangement], Disturbance] = Disturbance,
    keeping: Keeping = KEEPING,
    follow: Sink = lambda record: None,
    alarms: Sequence[Sink] = (),
    tell: Callable[[str], None] = lambda line: None,
    on_directory: Callable[[Path], None] = lambda path: None,
) -> Execution:
    """Go on with a run after the end of its process: killed, crashed, or with the machine.

    The run goes on in its own directory and journal, of which an incomplete last request is set
    aside. In virtual time the run ends as it would have ended without a break.

    Args:
        run: The run directory, or the trace in it.
        crew: The team that goes on.
        disturb: Makes the disturbance that the run had (`disturbance_of`).
        keeping: Settings of the journal.
        follow: Takes every record, the recorded ones too, to show it for instance.
        alarms: Take the new records alone.
        tell: Takes a line about the journal, or when a request to a language model fails.
        on_directory: Takes the run's directory before the run goes on.

    Raises:
        SettingsError: The run has ended, or it needs another team.
        DigError: The journal is damaged, cannot be written, or cannot be driven again.
    """
    start, path = time.monotonic(), trace_path(run)
    side = _side_of(path)
    speed = clock_speed(side)  # 0: its time is virtual
    stopped = _set_tail_aside(path, tell)
    setup = crew.setup or replace(setup_of(read_requests(path)), tools=task_tools(side))
    setup = replace(setup, speed=speed or 1.0)
    team = crew.team if speed else in_virtual_time(crew.team)
    disturbance, counts, tell_new = disturb(Arrangement(setup, team)), Counts(), cache(tell)
    for model in models(team):
        model.tell = tell_new
    directory = RunDirectory.reopen(path.parent, keeping)
    with closing(directory.journal) as journal:  # from here on no other process writes to it
        resumption, posed = _rebuild(path, setup, speed > 0, counts, disturbance.follow, follow)
        on_directory(directory.path)
        # In virtual time nothing has passed, and the trace is that of an unbroken run.
        resumed = {"down_s": round(max(0.0, time.time() - stopped), 3)} if speed else None
        moment = resumption.checkpoint(journal, *alarms, resumed=resumed)
        with exchanges(models(team), directory.path, disk_full=keeping.disk_full):
            problems = crew.problems()[posed:]
            result = resume(moment, disturbance, journal, is_virtual=not speed, problems=problems)
    score = counts.check_evidence(crew.score(result.answer))
    score = with_mistakes(score, crew.mistakes, path.parent)
    execution = Execution(
        result, score, path.parent, str(side.get("clock")), time.monotonic() - start,
        journal.unreplayable_from, crew.agents_are, side.get("data_are"), counts,
        disturbance.outcome(), method=str(side.get("method")),
        json_modes={m.settings.model: m.json_mode for m in models(team) if m.json_mode != "strict"},
    )  # fmt: skip
    directory.write_result(execution.to_json())
    return execution


def _set_tail_aside(path: Path, tell: Callable[[str], None]) -> float:
    """Set an incomplete last request aside; return when the run stopped, in seconds since 1970."""
    records = whole_requests(path)  # which tells if there is no journal
    if not all(file.is_file() for file in segments(path)):
        raise SettingsError(f"{path} is compressed, and cannot go on; fork it (`digmon fork`)")
    stopped = max(file.stat().st_mtime for file in segments(path))
    if (aside := recover(path, records=records)) is not None:
        tell(str(aside))
    return stopped


def _rebuild(path: Path, setup: Setup, is_timed: bool, *sinks: Sink) -> tuple[Resumption, int]:
    """Drive a monitor through the journal, and count the posed problems.

    Raises:
        SettingsError: The run has ended.
    """
    posed: list[Record] = []

    def count(record: Record) -> None:
        if isinstance(record, Emit) and record.by is None:
            posed.append(record)

    resumption = resume_lines(
        RecordedLines(path), setup, name=str(path), completes=True, remembers=True,
        timing=REAL_TIME if is_timed else None, sink=FanOut(count, *sinks),
    )  # fmt: skip
    if resumption.monitor.graph.finished is not None:
        raise SettingsError(f"{path.parent} has ended, and cannot go on; fork it (`digmon fork`)")
    return resumption, len(posed)


def _side_of(path: Path) -> dict[str, Any]:
    """Read the side file of a run, and refuse some runs.

    Raises:
        SettingsError: The run has lost a part of its journal, or is a fork.
    """
    side, folder = read_side(path.parent), path.parent
    if path.with_name(path.name + UNREPLAYABLE).exists():
        raise SettingsError(f"{folder} went on without its journal, so its end is unknown")
    if "forked_from" in side:
        raise SettingsError(f"{folder} is a fork: fork its parent again")
    return side
