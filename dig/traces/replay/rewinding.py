"""The state of a run while it is driven to some moment, and what was still to come then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dig.detectors.interventions import STEPS
from dig.errors import DecisionError, PayloadError, ReplayError, RequestError
from dig.graph import records
from dig.graph.records import (
    Emit,
    End,
    Finish,
    HealRow,
    IncidentRow,
    Join,
    Leave,
    Record,
    Redirect,
    Start,
    micros,
)
from dig.monitor.messages import Effect, Output, Over, Started, Wake
from dig.monitor.monitor import Monitor
from dig.runtime.agents import with_note
from dig.runtime.checkpoint import (
    Checkpoint,
    ExternalInput,
    PastActivation,
    PendingStart,
    Phase,
    RunningActivation,
    phase_at,
)
from dig.runtime.errors import STACK
from dig.runtime.host import Setup
from dig.runtime.result import GAVE_UP
from dig.runtime.reviewer import Reviewer

from .drive import Done, ReplayDriver, request_from_outside
from .requests import RecordedRequests


class RewindState:
    """The starts and activations in progress while a recorded run is driven to some moment."""

    def __init__(self, driver: ReplayDriver, phases: Sequence[Phase]) -> None:
        """Begin before the second record.

        Args:
            driver: Drives the run.
            phases: The phases of the run; the last one begins at the moment.
        """
        self.driver = driver
        self.phases = tuple(phases)
        self._agenda: dict[tuple[str, str], PendingStart | RunningActivation] = {}
        self._past: dict[str, list[PastActivation]] = {}
        self._places: dict[str, tuple[str, int]] = {}  # activation -> its place in the past
        self._left_over: list[Effect] = []

    def step(self) -> None:
        """Make one more request.

        Raises:
            ReplayError: The run ends before that moment, or cannot be driven on.
        """
        host = self.driver.host
        first = host.monitor.graph.t + 1
        host.notes = phase_at(self.phases, first).notes
        done = self.driver.step()
        if done is None:
            raise ReplayError("the recorded run ends before that moment")
        record = done.record
        if isinstance(record, Start | Leave):
            self._agenda.pop(("start", record.agent), None)
        elif isinstance(record, End):
            self._end(record, done)
        for name in self.running - host.monitor.graph.activations.keys():
            del self._agenda["end", name]  # its agent has left, so nothing comes of it
        for effect in done.effects:
            if isinstance(effect, Wake) and not self._is_overdue(effect.agent):
                self._plan(PendingStart(effect.agent, self.driver.us, t=first))
            elif isinstance(effect, Started):
                self._start(effect, phase_at(self.phases, first))
            elif isinstance(effect, Over):
                self._left_over.append(effect)

    def _is_overdue(self, agent: str) -> bool:
        """Whether an agent's start is due already, and only waits for the reviewer."""
        item = self._agenda.get(("start", agent))
        if not isinstance(item, PendingStart) or item.until_us is None:
            return False
        return item.until_us <= self.driver.us

    def _end(self, end: End, done: Done) -> None:
        item = self._agenda.pop(("end", end.activation))
        assert isinstance(item, RunningActivation)
        self._decided(end, done.outputs)
        if done.again_s is not None:
            until = self.driver.us + micros(done.again_s)
            self._plan(PendingStart(item.started.agent, self.driver.us, until, end.t))

    def _start(self, started: Started, phase: Phase) -> None:
        view = self.driver.host.view(started)
        self._plan(RunningActivation(started, view, self.driver.us))
        past = self._past.setdefault(started.agent, [])
        self._places[started.activation] = (started.agent, len(past))
        by = phase.seats.get(started.agent, started.agent)
        past.append(PastActivation(view, None, by=by, repeats=phase.repeats))

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

    @property
    def running(self) -> set[str]:
        """The activations in progress."""
        return {name for kind, name in self._agenda if kind == "end"}

    def moment(
        self,
        setup: Setup,
        tape: RecordedRequests,
        planned: Sequence[ExternalInput] = (),
        again: Mapping[str, str | None] | None = None,
    ) -> Checkpoint:
        """The run at this moment, with the later decisions and inputs from the recording.

        Args:
            setup: The setup of the run.
            tape: The rest of the recording.
            planned: Further requests; at the same moment they come first.
            again: The activations whose recorded end does not count, each with a note or ``None``.
        """
        driver, again = self.driver, again or {}
        now = self.phases[-1]
        driver.host.notes = now.notes
        ends, emits, stacks, outside = _rest(
            tape, self.running - again.keys(), self._places.keys() - again.keys(), setup.reviewer
        )
        agenda: list[PendingStart | RunningActivation] = []
        for item in self._agenda.values():
            if isinstance(item, RunningActivation):
                if end := ends.get(item.started.activation):
                    outputs = tuple(tape.output(emits[name]) for name in end.outputs)
                    stack = stacks.get(end.activation, "")
                    item = replace(item, end=end, outputs=outputs, stack=stack)
                    self._decided(end, outputs)
                else:  # its agent will be asked again
                    self._past[item.started.agent].pop()
                    note = again.get(item.started.activation)
                    item = item if note is None else replace(item, view=with_note(item.view, note))
            agenda.append(item)
        return Checkpoint(
            replace(setup, limit_s=setup.limit_s + now.wait_s),
            driver.host, driver.clock, driver.us, agenda, [*planned, *outside], self._past,
            self._left_over, _unrecorded_us(tape), self.phases,
        )  # fmt: skip


def _unrecorded_us(tape: RecordedRequests) -> int:
    """The first moment of which a recording says nothing, after it was read to its end."""
    last = tape.behind
    assert last is not None
    return last.us + isinstance(last, Finish)


def _rest(
    tape: RecordedRequests, running: set[str], begun: Collection[str], reviewer: Reviewer | None
) -> tuple[dict[str, End], dict[str, Emit], dict[str, str], list[ExternalInput]]:
    """The later records that are repeated: ends of running activations, inputs from outside.

    A reviewer comes and goes by itself.
    """
    ends: dict[str, End] = {}
    emits: dict[str, Emit] = {}
    stacks: dict[str, str] = {}
    outside: list[ExternalInput] = []
    before = tape.behind
    for record in tape.rest():
        if isinstance(record, End) and record.activation in running:
            ends[record.activation] = record
        elif isinstance(record, Emit) and record.by in ends:
            emits[record.event] = record
        elif (failed := _stack_in(record).get("activation")) in running:
            stacks[str(failed)] = str(_stack_in(record).get("text"))
        elif not (
            (isinstance(record, Join | Leave) and reviewer and record.agent == reviewer.name)
            or is_healed(record, before)
            or _waits_elsewhere(record, running)
            or record.t in tape.left_out
            or _is_ending(record)
            or (failed is not None and failed not in begun)
        ):
            request = request_from_outside(record, tape)
            if request is not None:
                about = {"record": record.t, "kind": record.kind}
                repeat = repeatable("could not be repeated", about, request)
                outside.append(ExternalInput(record.us, record.t, repeat))
        before = record
    whole = {name: end for name, end in ends.items() if emits.keys() >= set(end.outputs)}
    return whole, emits, stacks, outside


def _stack_in(record: Record) -> Mapping[str, Any]:
    """The detail of an incident with a stack trace; of another record, nothing."""
    detail = record.detail if isinstance(record, IncidentRow) and record.what == STACK else None
    if isinstance(detail, dict) and isinstance(detail.get("activation"), str):
        return detail
    return {}


def _is_ending(record: Record) -> bool:
    """Whether a record tells how the host ended something, which a fork does anew.

    Of a request that it lets fail a host says why; somebody else may give one up without a word.
    """
    if not isinstance(record, IncidentRow):
        return False
    detail = record.detail if isinstance(record.detail, dict) else {}
    has_reason = bool(detail.get("error") or detail.get("activation"))
    return record.what == GAVE_UP or (record.what == records.REQUEST_FAILED and has_reason)


def _waits_elsewhere(record: Record, running: set[str]) -> bool:
    """Whether a host says of a turn that it waits which may come otherwise."""
    if not (isinstance(record, IncidentRow) and record.what == records.WAITS):
        return False
    detail = record.detail if isinstance(record.detail, dict) else {}
    return detail.get("activation") not in running


def repeatable(
    what: str, about: Mapping[str, Any], request: Callable[[Monitor], list[Effect]]
) -> Callable[[Monitor], list[Effect]]:
    """A request that is recorded as an incident if it is impossible by then.

    Args:
        what: The incident.
        about: The detail of the error besides the reason.
        request: The request.
    """

    def repeat(monitor: Monitor) -> list[Effect]:
        try:
            return request(monitor)
        except (DecisionError, PayloadError, RequestError) as error:
            return monitor.incident(what, {**about, "why": str(error)})

    return repeat


def is_healed(record: Record, before: Record | None) -> bool:
    """Whether a record is a redirect, or a leave, that follows from the healing before it."""
    if not isinstance(before, HealRow):
        return False
    if isinstance(record, Leave):
        return before.action == "replace"
    return isinstance(record, Redirect) and before.event == record.event and before.action in STEPS
