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
from dig.errors import ReplayError, TraceError
from dig.graph.records import FindingRow, Finish, HealRow, Record, Start
from dig.monitor.sinks import Sink
from dig.runtime.agents import Tool
from dig.runtime.checkpoint import Checkpoint, Phase
from dig.runtime.host import Setup
from dig.traces.journal.journal import SIDE, read_side
from dig.traces.journal.reader import read_records, trace_path

from .changes import AT_ONCE, EditRecord, OmitRecord, Reseat, RunChange, TellAgent, WaitLonger
from .drive import ReplayDriver
from .edits import Change, changeable
from .planned import Planned
from .requests import RecordedRequests
from .rerun import setup_of
from .rewinding import RewindState, is_healed

_NEAR = 2


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
        edit: The new values in record `at`, see `Change`; ``None``: nothing is changed.
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
    edit, changes = _edit_of(at, edit, changes)
    side = _side(path)
    phases = phases_with(side, at, changes, repeat)
    if at < earliest(side):
        raise ReplayError(
            f"the run is itself a fork, and was changed before record {earliest(side)}: fork it "
            "there or later, or fork its parent"
        )
    change, finding, place = _change(path, at, edit)
    omitted = {one.t for one in changes if isinstance(one, OmitRecord)}
    tape = RecordedRequests(path, left_out=omitted)
    setup = setup_of(tape, setup) if setup else _with_tools(setup_of(tape), tools, side, path)
    driven = setup if finding is None or change is None else change.healing(setup, finding, place)
    driver = ReplayDriver(tape, driven, sink=sink, free_from=at, edit=change)
    planned = Planned.read(path, changes)
    rewinding = RewindState(driver, phases)
    while driver.host.monitor.graph.t + 1 < at:
        rewinding.step()
    if change is not None and change.begins_a_request and not change.is_done:
        rewinding.step()
        tape.pop()
    if change is not None and not change.is_done:
        raise ReplayError(f"record {at} did not come about again, so it was not changed")
    ahead = tape.ahead()
    if ahead and isinstance(ahead.record, Start) and ahead.record.activation in planned.again:
        rewinding.step()
        tape.pop()
    planned.check(rewinding.running, driver.host.monitor.graph)
    return rewinding.moment(setup, tape, planned.inputs(driver.us), planned.again)


# --- what the run was, and what is to be changed ---


def _edit_of(
    at: int, edit: Mapping[str, Any] | None, changes: Sequence[RunChange]
) -> tuple[Mapping[str, Any] | None, list[RunChange]]:
    """The edit of record `at`, and all other changes."""
    edits = [one for one in changes if isinstance(one, EditRecord)]
    others: list[RunChange] = [one for one in changes if not isinstance(one, EditRecord)]
    if len(edits) + (edit is not None) > 1:
        raise ReplayError("one record can be edited in a fork, not several")
    early = min((one.at for one in changes), default=at)
    if early < at:
        raise ReplayError(f"a change is from record {early} on, before the fork at {at}")
    if edits and edits[0].at != at:
        raise ReplayError(
            f"record {edits[0].at} cannot be edited in a fork at {at}: what comes between may be "
            "different; fork at that record"
        )
    return edits[0].edit if edits else edit, others


@dataclass(frozen=True)
class _Told:
    """The phases that the side file of a fork describes."""

    phases: tuple[Phase, ...] = ()
    earliest: Annotated[int, Field(ge=0)] = 0


_TOLD: TypeAdapter[_Told] = TypeAdapter(_Told)


def _side(path: Path) -> dict[str, Any]:
    folder = trace_path(path).parent
    return read_side(folder) if (folder / SIDE).exists() else {}


def _told(side: Mapping[str, Any]) -> _Told:
    origin = side.get("forked_from")
    if not isinstance(origin, dict):
        return _Told()
    try:
        said = {key: origin[key] for key in ("phases", "earliest") if key in origin}
        told = _TOLD.validate_python(said)
    except ValidationError as error:
        place, why = first_wrong(error)
        raise ReplayError(f"the side file's `forked_from` is wrong at {place}: {why}") from None
    if not all(0 <= phase.wait_s <= MOST_SECONDS for phase in told.phases):
        raise ReplayError("the side file's `forked_from` has a `wait_s` that is no time")
    return told


def earliest(side: Mapping[str, Any]) -> int:
    """The earliest record at which a run can be forked, from its side file."""
    return _told(side).earliest


def earliest_of(side: Mapping[str, Any], at: int, changes: Sequence[RunChange], repeat: int) -> int:
    """The earliest record at which a fork of a run can be forked.

    Args:
        side: The side file of the run.
        at: The record of the fork.
        changes: The changes made in it, edits included.
        repeat: Its repeat.
    """
    if any(isinstance(one, AT_ONCE) for one in changes):
        return 1 + max(one.at for one in changes if isinstance(one, AT_ONCE))
    lasts = any(isinstance(one, Reseat | WaitLonger) for one in changes)
    return max(at, earliest(side)) if lasts or repeat else earliest(side)


def phases_with(
    side: Mapping[str, Any], at: int, changes: Sequence[RunChange], repeat: int
) -> list[Phase]:
    """The phases of a fork: those of its parent, and one that begins with the fork.

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
    phases = _told(side).phases or (Phase(),)
    before = phases[-1]
    seats, notes, wait_s = {**before.seats}, {**before.notes}, before.wait_s
    for one in changes:
        if isinstance(one, Reseat):
            seats[one.agent] = before.seats.get(one.by, one.by)
        elif isinstance(one, TellAgent) and not one.once:
            notes[one.agent] = one.note
        elif isinstance(one, WaitLonger):
            wait_s += one.seconds
        lasts = isinstance(one, Reseat) or (isinstance(one, TellAgent) and not one.once)
        if lasts and one.at != at:
            raise ReplayError(f"a change of kind `{one.kind}` is made where the fork begins: {at}")
    repeats = (*before.repeats, repeat) if repeat else before.repeats
    phase = Phase(at, repeats, seats, notes, wait_s)
    return [*phases] if replace(phase, at=before.at) == before else [*phases, phase]


def _with_tools(
    setup: Setup, tools: Mapping[str, Tool] | None, side: Mapping[str, Any], path: Path
) -> Setup:
    """A setup from a header, which says nothing about tools."""
    if tools is None and "task" in side:
        raise ReplayError(
            f"{path} is a run of a task, and its agents may call tools, which are not in its "
            "journal: hand in `tools={...}`, or a `setup`, such as that of "
            "`dig.tasks.run.fork.simulated_crew`"
        )
    return replace(setup, tools=tools or {})


def _change(
    path: Path, at: int, edit: Mapping[str, Any] | None
) -> tuple[Change | None, FindingRow | None, tuple[int, int]]:
    """The requested change; for a note also its finding, the step and the intervention's number."""
    findings: dict[int, FindingRow] = {}
    healed: list[tuple[int, int]] = []  # findings and moments
    before: Record | None = None
    record: Record | None = None
    for record in read_records(path, payloads=False):
        if record.t == at:
            break
        if isinstance(record, FindingRow):
            findings[record.t] = record
        elif isinstance(record, HealRow) and record.action != "refused":
            healed.append((record.finding, record.us))
        before = record
    if record is None or record.t != at:
        last = -1 if record is None else record.t
        if record is None or isinstance(record, Finish) or at != last + 1 or edit is not None:
            raise TraceError(trace_path(path), None, f"there is no record {at}; the last is {last}")
        return None, None, (0, 0)  # the run was cut off, and goes on
    if edit is None:
        return None, None, (0, 0)
    try:
        if is_healed(record, before):
            raise ReplayError(f"record {at} follows from healing; change record {at - 1} before it")
        change = Change(record, edit)
    except ReplayError as error:
        raise ReplayError(f"{error}{_near(path, at, edit)}") from None
    if not isinstance(record, HealRow):
        return change, None, (0, 0)
    steps = {us for t, us in healed if t == record.finding and us < record.us}
    number = healed.count((record.finding, record.us))
    return change, findings[record.finding], (len(steps), number)


def _near(path: Path, at: int, edit: Mapping[str, Any]) -> str:
    """The records near `at` in which the same could be changed, as the end of an error."""
    before: list[str] = []
    after: list[str] = []
    last: Record | None = None
    for record in read_records(path, payloads=False):
        keys = () if is_healed(record, last) else changeable(record)
        if record.t != at and keys and edit.keys() <= {*keys}:
            (before if record.t < at else after).append(f"{record.t} (`{record.kind}`)")
        if len(after) == _NEAR:
            break
        last = record
    near = [*before[-_NEAR:], *after]
    return f"; near it that can be changed in {', '.join(near)}" if near and edit else ""
