"""Resumes a run whose process ended: the same directory, the same journal, which goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

from dig.errors import SettingsError
from dig.graph.records import Emit, Record
from dig.monitor.sinks import FanOut, Sink
from dig.runtime.host import REAL_TIME
from dig.runtime.resume import Resumption
from dig.show.page.about import clock_speed
from dig.traces.journal.exchanges import exchanges
from dig.traces.journal.journal import (
    KEEPING,
    RESULT,
    UNREPLAYABLE,
    Keeping,
    RunDirectory,
    read_side,
)
from dig.traces.journal.locking import is_being_written
from dig.traces.journal.recovery import recover, whole_requests
from dig.traces.journal.segments import segments, trace_path
from dig.traces.replay.rerun import setup_of
from dig.traces.replay.tape import RecordedLines, read_requests

from .arrange import Disturbance
from .execute import Execution, resume
from .measures import Counts
from .methods import Arrangement
from .run_fork import Crew, simulated_crew, task_tools
from .teams import in_virtual_time, models


def resume_run(
    run: Path,
    *,
    crew: Crew | None = None,
    detectors: Collection[str] = (),
    disturb: Callable[[Arrangement], Disturbance] | None = None,
    keeping: Keeping = KEEPING,
    follow: Sink = lambda record: None,
    alarms: Sequence[Sink] = (),
    tell: Callable[[str], None] = lambda line: None,
    on_directory: Callable[[Path], None] = lambda path: None,
) -> Execution:
    """Go on with a run whose process ended: killed, crashed, or with the machine.

    The run goes on in its own directory; nothing of its journal is changed but an incomplete last
    request, which is set aside. Activations in progress begin again. In virtual time the run ends
    as it would have ended without a break.

    Args:
        run: The run directory, or the trace in it.
        crew: The team that goes on; ``None``: simulated agents, if the run had them.
        detectors: The user's detectors that the run had, as `module:object`.
        disturb: Makes the disturbance that the run had (`disturbance_of`); ``None``: it had none.
        keeping: Settings of the journal.
        follow: Takes every record, the recorded ones too, to show it for instance.
        alarms: Take the new records alone.
        tell: Takes a line at once when a request to a language model fails; the same line once.
        on_directory: Takes the run's directory before the run goes on.

    Raises:
        SettingsError: The run has ended or is still going on, or it needs another team.
        ReplayError: A record cannot be made again, or the run had other parts.
        TraceError: The journal is damaged.
        JournalError: The journal cannot be written.
    """
    start, path = time.monotonic(), trace_path(run)
    _check(path)
    side = read_side(path.parent)
    if side.get("forked_from"):
        raise SettingsError(f"{path.parent} is a fork: fork its parent again")
    if disturb is None and side.get("faults"):
        raise SettingsError(f"{path.parent} is a run with faults; hand in `disturb`")
    crew = crew or simulated_crew(side, detectors)
    clock, speed = str(side.get("clock")), clock_speed(side)
    is_virtual = not speed
    if (aside := recover(path, records=whole_requests(path))) is not None:
        tell(str(aside))
    down_s = max(0.0, time.time() - max(file.stat().st_mtime for file in segments(path)))
    setup = crew.setup or replace(setup_of(read_requests(path)), tools=task_tools(side))
    setup = replace(setup, speed=speed or 1.0)
    team = in_virtual_time(crew.team) if is_virtual else crew.team
    disturbance = (disturb or Disturbance)(Arrangement(setup, team))
    counts, posed, tell_new = Counts(), _Posed(), cache(tell)
    for model in models(team):
        model.tell = tell_new
    directory = RunDirectory.reopen(path.parent, keeping)
    with closing(directory.journal) as journal:  # from here on no other process writes to it
        resumption = Resumption(
            RecordedLines(path), setup, name=str(path), completes=True, remembers=True,
            sink=FanOut(counts, posed, disturbance.follow, follow),
            timing=None if is_virtual else REAL_TIME,
        )  # fmt: skip
        resumption.feed()
        graph = resumption.monitor.graph
        if graph.finished is not None or resumption.lines is None:
            raise SettingsError(_ENDED.format(path.parent))
        on_directory(directory.path)
        for alarm in alarms:
            alarm(graph.run)  # from which it knows the name
        # In virtual time nothing has passed, and the trace is that of an unbroken run.
        resumed = None if is_virtual else {"down_s": round(down_s, 3)}
        checkpoint = resumption.checkpoint(resumed)
        resumption.go_live(journal, *alarms)
        with exchanges(models(team), directory.path, disk_full=keeping.disk_full):
            result = resume(
                checkpoint, disturbance, journal, is_virtual=is_virtual,
                problems=crew.problems()[posed.count :],
            )  # fmt: skip
    execution = Execution(
        result, crew.score(result.answer), directory.path, clock, time.monotonic() - start,
        journal.unreplayable_from, crew.agents_are, side.get("data_are"), counts,
        disturbance.outcome(),
        {m.settings.model: m.json_mode for m in models(team) if m.json_mode != "strict"},
    )  # fmt: skip
    directory.write_result(execution.to_json())
    return execution


_ENDED = "{} has ended, and cannot go on; `digmon fork` lets it go on from an earlier record"


class _Posed:
    """Counts the problems that have been posed."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, record: Record) -> None:
        self.count += isinstance(record, Emit) and record.by is None


def _check(path: Path) -> None:
    """Refuse a run that has ended, is going on, or has lost a part of its journal.

    Raises:
        SettingsError: It is one of these.
    """
    if (path.parent / RESULT).exists():
        raise SettingsError(_ENDED.format(path.parent))
    if path.with_name(path.name + UNREPLAYABLE).exists():
        raise SettingsError(f"{path.parent} went on without its journal, so its end is unknown")
    if path.exists() and is_being_written(path):
        raise SettingsError(f"{path.parent} is still going on: its process is alive")
