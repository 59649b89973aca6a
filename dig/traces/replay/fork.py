"""Fork: bring a recorded run to some moment, change one record, and continue from there.

    moment = rewind(run, at=41, edit={"to": ["bob"]}, sink=journal)
    result = Simulation.resume(moment, team).run()

Up to record `at` nothing is decided anew: the monitor is driven by the recorded decisions, and
its records are compared with the trace byte by byte. No agent, model or tool is called for an
activation whose decision was recorded, even if that came after `at`: its inputs
cannot have been changed. Inputs from outside after `at` are repeated as they were recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dig.errors import ReplayError, RequestError, TraceError
from dig.graph.records import (
    Emit,
    End,
    FindingRow,
    Finish,
    HealRow,
    Join,
    Leave,
    Record,
    Redirect,
    Start,
    micros,
)
from dig.monitor.messages import Effect, Output, Over, Started, Wake
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import Sink
from dig.runtime.checkpoint import (
    Checkpoint,
    ExternalInput,
    PastActivation,
    PendingStart,
    RunningActivation,
)
from dig.runtime.host import Setup
from dig.runtime.reviewer import Reviewer
from dig.traces.journal.reader import read_records, trace_path

from .drive import Done, ReplayDriver, request_from_outside
from .edits import Change
from .requests import RecordedRequests
from .rerun import setup_of


def rewind(
    path: Path,
    at: int,
    *,
    edit: Mapping[str, Any] | None = None,
    setup: Setup | None = None,
    sink: Sink = lambda record: None,
) -> Checkpoint:
    """Bring a recorded run to logical time `at`.

    Args:
        path: The journal or its run directory; it is only read.
        at: The first record that may differ. If it lies among the records of a request, the
            whole request is made.
        edit: The new values in record `at`, see `Change`; ``None``: nothing is changed.
        setup: The parts of the run that are not dig's own, tools included; ``None``: all are.
        sink: Receives every record, those before `at` as they were recorded; by default none does.

    Returns:
        The run at that moment, for `Simulation.resume` or, in real time, `Resumed`.

    Raises:
        ReplayError: The run cannot be forked there, or cannot be changed in this way.
        TraceError: The trace cannot be read, or has no record `at`.
    """
    change, finding, number = _change(path, at, edit)
    tape = RecordedRequests(path)
    setup = setup_of(tape, setup)
    driven = setup if finding is None or change is None else change.healing(setup, finding, number)
    rewind = _RewindState(ReplayDriver(tape, driven, sink=sink, free_from=at, edit=change))
    while rewind.driver.host.monitor.graph.t + 1 < at:
        rewind.step()
    if change is not None and change.begins_a_request and not change.is_done:
        rewind.step()
        tape.pop()
    if change is not None and not change.is_done:
        raise ReplayError(f"record {at} did not come about again, so it was not changed")
    return rewind.moment(setup, tape)


def _change(
    path: Path, at: int, edit: Mapping[str, Any] | None
) -> tuple[Change | None, FindingRow | None, int]:
    """The requested change; for a note also its finding and the number of the intervention."""
    findings: dict[int, FindingRow] = {}
    healed: list[int] = []
    before: Record | None = None
    record: Record | None = None
    for record in read_records(path, payloads=False):
        if record.t == at:
            break
        if isinstance(record, FindingRow):
            findings[record.t] = record
        elif isinstance(record, HealRow):
            healed.append(record.finding)
        before = record
    if record is None or record.t != at:
        last = -1 if record is None else record.t
        if record is None or isinstance(record, Finish) or at != last + 1 or edit is not None:
            raise TraceError(trace_path(path), None, f"there is no record {at}; the last is {last}")
        return None, None, 0  # the run was cut off, and goes on
    if edit is None:
        return None, None, 0
    if _is_healed(record, before):
        raise ReplayError(f"record {at} follows from healing; change record {at - 1} before it")
    change = Change(record, edit)
    if not isinstance(record, HealRow):
        return change, None, 0
    return change, findings[record.finding], healed.count(record.finding)


def _is_healed(record: Record, before: Record | None) -> bool:
    """Whether a record is a redirect that follows from the healing before it."""
    if not (isinstance(record, Redirect) and isinstance(before, HealRow)):
        return False
    return before.action == "reroute" and before.event == record.event


class _RewindState:
    """The starts and activations in progress while a recorded run is driven to some moment."""

    def __init__(self, driver: ReplayDriver) -> None:
        self.driver = driver
        self._agenda: dict[tuple[str, str], PendingStart | RunningActivation] = {}
        self._past: dict[str, list[PastActivation]] = {}
        self._places: dict[str, tuple[str, int]] = {}  # activation -> its place in the past
        self._left_over: list[Effect] = []

    def step(self) -> None:
        """Make one more request."""
        done = self.driver.step()
        if done is None:
            raise ReplayError("the recorded run ends before that moment")
        record = done.record
        if isinstance(record, Start | Leave):
            self._agenda.pop(("start", record.agent), None)
        elif isinstance(record, End):
            self._end(record, done)
        for effect in done.effects:
            if isinstance(effect, Wake):
                self._plan(PendingStart(effect.agent, self.driver.us))
            elif isinstance(effect, Started):
                self._start(effect)
            elif isinstance(effect, Over):
                self._left_over.append(effect)

    def _end(self, end: End, done: Done) -> None:
        item = self._agenda.pop(("end", end.activation))
        assert isinstance(item, RunningActivation)
        self._decided(end, done.outputs)
        if done.again_s is not None:
            until = self.driver.us + micros(done.again_s)
            self._plan(PendingStart(item.started.agent, self.driver.us, until))

    def _start(self, started: Started) -> None:
        view = self.driver.host.view(started)
        self._plan(RunningActivation(started, view, self.driver.us))
        past = self._past.setdefault(started.agent, [])
        self._places[started.activation] = (started.agent, len(past))
        past.append(PastActivation(view, None))

    def _plan(self, item: PendingStart | RunningActivation) -> None:
        """Remember a pending start or end, in the order of beginning."""
        if isinstance(item, PendingStart):
            key = ("start", item.agent)
        else:
            key = ("end", item.started.activation)
        self._agenda.pop(key, None)
        self._agenda[key] = item

    def _decided(self, end: End, outputs: tuple[Output, ...]) -> None:
        agent, place = self._places[end.activation]
        self._past[agent][place] = replace(self._past[agent][place], end=end, outputs=outputs)

    # --- what comes after the moment ---

    def moment(self, setup: Setup, tape: RecordedRequests) -> Checkpoint:
        """The run at this moment, with the later decisions and inputs from the recording."""
        driver = self.driver
        running = {name for kind, name in self._agenda if kind == "end"}
        ends, emits, outside = _rest(tape, running, setup.reviewer)
        agenda: list[PendingStart | RunningActivation] = []
        for item in self._agenda.values():
            if isinstance(item, RunningActivation):
                if end := ends.get(item.started.activation):
                    outputs = tuple(tape.output(emits[name]) for name in end.outputs)
                    item = replace(item, end=end, outputs=outputs)
                    self._decided(end, outputs)
                else:  # its agent will be asked again
                    self._past[item.started.agent].pop()
            agenda.append(item)
        return Checkpoint(
            setup, driver.host, driver.clock, driver.us, agenda, outside, self._past,
            self._left_over, _unrecorded_us(tape),
        )  # fmt: skip


def _unrecorded_us(tape: RecordedRequests) -> int:
    """The first moment of which a recording says nothing, after it was read to its end."""
    last = tape.behind
    assert last is not None
    return last.us + isinstance(last, Finish)


def _rest(
    tape: RecordedRequests, running: set[str], reviewer: Reviewer | None
) -> tuple[dict[str, End], dict[str, Emit], list[ExternalInput]]:
    """The later records that are repeated: ends of running activations, inputs from outside.

    A reviewer comes and goes by itself.
    """
    ends: dict[str, End] = {}
    emits: dict[str, Emit] = {}
    outside: list[ExternalInput] = []
    before = tape.behind
    for record in tape.rest():
        if isinstance(record, End) and record.activation in running:
            ends[record.activation] = record
        elif isinstance(record, Emit) and record.by in ends:
            emits[record.event] = record
        elif not (
            (isinstance(record, Join | Leave) and reviewer and record.agent == reviewer.name)
            or _is_healed(record, before)
        ):
            request = request_from_outside(record, tape)
            if request is not None:
                outside.append(ExternalInput(record.us, _repeatable(record, request)))
        before = record
    whole = {name: end for name, end in ends.items() if emits.keys() >= set(end.outputs)}
    return whole, emits, outside


def _repeatable(
    record: Record, request: Callable[[Monitor], list[Effect]]
) -> Callable[[Monitor], list[Effect]]:
    """A request that is recorded as an incident if it is impossible by then."""

    def repeat(monitor: Monitor) -> list[Effect]:
        try:
            return request(monitor)
        except RequestError as error:
            detail = {"record": record.t, "kind": record.kind, "why": str(error)}
            return monitor.incident("could not be repeated", detail)

    return repeat
