"""Fork: bring a recorded run to some moment, change something, and continue from there.

    moment = rewind(run, at=41, edit={"to": ["bob"]}, sink=journal)
    result = Simulation.resume(moment, team).run()

Up to record `at` nothing is decided anew: the monitor is driven by the recorded decisions, and
its records are compared with the trace byte by byte. No agent, model or tool is called for an
activation whose decision was recorded, even if that came after `at`: its inputs
cannot have been changed. Inputs from outside after `at` are repeated as they were recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from dig._util.text import first_wrong
from dig.detectors.thresholds import MOST_SECONDS
from dig.errors import ReplayError
from dig.graph.records import Start
from dig.monitor.sinks import Sink
from dig.runtime.agents import Tool
from dig.runtime.checkpoint import Checkpoint, Phase
from dig.runtime.driver.drive import ReplayDriver
from dig.runtime.driver.rewind_state import RewindState
from dig.runtime.setup import Setup
from dig.traces.journal.journal import SIDE, read_side
from dig.traces.journal.reader import trace_path

from .changes import AT_ONCE, EditRecord, Reseat, RunChange, TellAgent, WaitLonger
from .planned import Planned
from .rerun import setup_of
from .tape import read_requests


def rewind(
    path: Path,
    at: int,
    *,
    edit: Mapping[str, Any] | None = None,
    changes: Sequence[RunChange] = (),
    repeat: int = 0,
    setup: Setup | None = None,
    tools: Mapping[str, Tool] | None = None,
    sink: Sink = lambda record: None,
) -> Checkpoint:
    """Bring a recorded run to logical time `at`.

    Args:
        path: The journal or its run directory; it is only read.
        at: The first record that may differ. If it lies among the records of a request, the
            whole request is made.
        edit: The new values in record `at`, see `RecordEdit`: short for a change `EditRecord`.
        changes: Further changes. Those with a later `at` are made at the moment of that record.
        repeat: The random numbers that agents and simulator draw from here on; 0: those of the run.
        setup: The parts of the run that are not dig's own, tools included; ``None``: all are.
        tools: The tools of the agents, if no setup is given.
        sink: Receives every record, those before `at` as they were recorded; by default none does.

    Returns:
        The run at that moment, for `Simulation.resume` or, in real time, `Resumed`.

    Raises:
        ReplayError: The run cannot be forked there, or cannot be changed in this way.
        TraceError: The trace cannot be read, or has no record `at`.
    """
    changes = [*changes, *([] if edit is None else [EditRecord(at, edit)])]
    folder = trace_path(path).parent
    side = read_side(folder) if (folder / SIDE).exists() else {}
    phases = phases_with(side, at, changes, repeat)
    if at < (earliest := _origin(side).earliest):
        raise ReplayError(
            f"the run is itself a fork, and was changed before record {earliest}: fork it "
            "there or later, or fork its parent"
        )
    planned = Planned.read(path, at, changes)
    edited, again = planned.edit, planned.decided_anew
    tape = read_requests(path, omitted=planned.omitted)
    setup = setup_of(tape, setup) if setup else _with_tools(setup_of(tape), tools, side, path)
    driver = ReplayDriver(tape, setup, sink=sink, free_from=at, edit=edited)
    state = RewindState(driver, phases)
    while driver.host.monitor.graph.t + 1 < at:
        state.step()
    # From here on the tape is not compared, so a request that is made has to be taken from it.
    if edited and edited.begins_request and not edited.is_done:
        state.step()
        tape.pop()
    if edited and not edited.is_done:
        raise ReplayError(f"record {at} did not come about again, so it was not changed")
    ahead = tape.ahead()
    if ahead and isinstance(ahead.record, Start) and ahead.record.activation in again:
        state.step()
        tape.pop()
    planned.check(state.running, driver.host.monitor.graph)
    return state.moment(setup, tape, planned.inputs(driver.us), again)


# --- the phases of a fork, and the setup of its parent ---


@dataclass(frozen=True)
class _Origin:
    """The phases of a fork, from the side file."""

    phases: tuple[Phase, ...] = ()
    earliest: Annotated[int, Field(ge=0)] = 0


_ORIGIN: TypeAdapter[_Origin] = TypeAdapter(_Origin)


def _origin(side: Mapping[str, Any]) -> _Origin:
    row = side.get("forked_from")
    if not isinstance(row, dict):
        return _Origin()
    try:
        keys = ("phases", "earliest")
        origin = _ORIGIN.validate_python({key: row[key] for key in keys if key in row})
    except ValidationError as error:
        place, reason = first_wrong(error)
        raise ReplayError(f"the side file's `forked_from` is wrong at {place}: {reason}") from None
    if not all(0 <= phase.wait_s <= MOST_SECONDS for phase in origin.phases):
        raise ReplayError("the side file's `forked_from` has a `wait_s` that is no time")
    return origin


def earliest_of(side: Mapping[str, Any], at: int, changes: Sequence[RunChange], repeat: int) -> int:
    """The earliest record at which a fork of a run can be forked.

    Args:
        side: The side file of the run.
        at: The record of the fork.
        changes: The changes made in it, edits included.
        repeat: Its repeat.
    """
    if at_once := [change.at for change in changes if isinstance(change, AT_ONCE)]:
        return 1 + max(at_once)
    lasts = any(isinstance(change, Reseat | WaitLonger) for change in changes)
    return max(at, _origin(side).earliest) if lasts or repeat else _origin(side).earliest


def phases_with(
    side: Mapping[str, Any], at: int, changes: Sequence[RunChange], repeat: int
) -> list[Phase]:
    """The phases of a fork: all phases of the parent, and a phase from the fork on.

    Args:
        side: The side file of the parent.
        at: The record of the fork.
        changes: The changes made in it.
        repeat: Its repeat.

    Raises:
        ReplayError: The side file is wrong, or a lasting change is not made where the fork begins.
    """
    if repeat < 0:
        raise ReplayError(f"a repeat is a number from 0 on, not {repeat}")
    phases = _origin(side).phases or (Phase(),)
    before = phases[-1]
    seats, notes, wait_s = {**before.seats}, {**before.notes}, before.wait_s
    for change in changes:
        if isinstance(change, Reseat):
            # A member that was reseated before decides by the behaviour it was given.
            seats[change.agent] = before.seats.get(change.by, change.by)
        elif isinstance(change, TellAgent) and not change.once:
            notes[change.agent] = change.note
        elif isinstance(change, WaitLonger):
            wait_s += change.seconds
        lasts = isinstance(change, Reseat) or (isinstance(change, TellAgent) and not change.once)
        if lasts and change.at != at:
            raise ReplayError(
                f"a change of kind `{change.kind}` is made where the fork begins: {at}"
            )
    repeats = (*before.repeats, repeat) if repeat else before.repeats
    phase = Phase(at, repeats, seats, notes, wait_s)
    return [*phases] if replace(phase, at=before.at) == before else [*phases, phase]


def _with_tools(
    setup: Setup, tools: Mapping[str, Tool] | None, side: Mapping[str, Any], path: Path
) -> Setup:
    """A setup from a header, with tools: a header does not describe tools."""
    if tools is None and "task" in side:
        raise ReplayError(
            f"{path} is a run of a task, and its agents may call tools, which are not in its "
            "journal: hand in `tools={...}`, or a `setup`, such as that of "
            "`dig.tasks.run.crew.simulated_crew`"
        )
    return replace(setup, tools=tools or {})
