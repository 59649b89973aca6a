"""The state of a run at some moment of its replay, and the recorded inputs after that moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dig.errors import DecisionError, PayloadError, ReplayError, RequestError
from dig.graph import records
from dig.graph.chain import checksum
from dig.graph.records import Emit, End, IncidentRow, Record
from dig.monitor.messages import Effect, Output, Over, Started, TakenOut, Wake
from dig.monitor.monitor import Monitor
from dig.runtime import checkpoint
from dig.runtime.agent_errors import STACK
from dig.runtime.agents import View, with_note
from dig.runtime.checkpoint import ExternalInput, PastActivation, PendingStart, RunningActivation
from dig.runtime.result import GAVE_UP
from dig.runtime.setup import Setup

from .drive import DrivenRequest, ReplayDriver, Request, request_from_outside
from .edits import is_healed
from .recorded_requests import RecordedRequests


class RewindState:
    """The starts and activations in progress while a recorded run is driven to some moment."""

    def __init__(
        self,
        driver: ReplayDriver,
        phases: Sequence[checkpoint.Phase] = (checkpoint.Phase(),),
        *,
        remembers: bool = True,
    ) -> None:
        """Begin before the second record.

        Args:
            driver: Drives the run.
            phases: The phases of the run; the last one begins at the moment.
            remembers: Whether past activations are kept, for agents with a state of their own.
        """
        self.driver = driver
        self.phases = tuple(phases)
        self._remembers = remembers
        self.agenda: dict[tuple[str, str], PendingStart | RunningActivation] = {}
        self._past: dict[str, list[PastActivation]] = {}
        self._places: dict[str, tuple[str, int]] = {}  # activation -> its place in the past
        self._left_over: list[Effect] = []

    def step(self) -> DrivenRequest:
        """Make and return the next request.

        Raises:
            ReplayError: The run ends before that moment, or cannot be driven on.
        """
        host, driver = self.driver.host, self.driver
        first = host.monitor.graph.t + 1
        host.notes = checkpoint.phase_at(self.phases, first).notes
        request = driver.step()
        if request is None:
            raise ReplayError("the recorded run ends before that moment")
        record = request.record
        if isinstance(record, records.Start | records.Leave):
            self.agenda.pop(("start", record.agent), None)
        elif isinstance(record, End):
            ended = self.agenda.pop(("end", record.activation))
            assert isinstance(ended, RunningActivation)
            if self._remembers:
                self._set_decision(record, request.outputs)
            if request.again_s is not None:
                until = driver.us + records.micros(request.again_s)
                agent = ended.started.agent
                self._plan(PendingStart(agent, driver.us, until, record.t))
        for name in self.running - host.monitor.graph.activations.keys():
            del self.agenda["end", name]  # its agent has left, so nothing comes of it
        starts = {
            row.activation: (row.t, checksum(line)[:16])
            for row, line in driver.latest
            if isinstance(row, records.Start)
        }
        for effect in request.effects:
            if isinstance(effect, Wake):
                start = self.agenda.get(("start", effect.agent))
                until_us = start.until_us if isinstance(start, PendingStart) else None
                # A start that is due already only waits for its host, and keeps its place.
                if until_us is None or until_us > driver.us:
                    self._plan(PendingStart(effect.agent, driver.us, t=first))
            elif isinstance(effect, Started):
                view = host.view(effect)
                t, mark = starts.get(effect.activation, (first, ""))
                self._plan(RunningActivation(effect, view, driver.us, t=t, mark=mark))
                if self._remembers:
                    self._remember(effect, view, checkpoint.phase_at(self.phases, first))
            elif isinstance(effect, TakenOut):
                self.agenda.pop(("start", effect.agent), None)
            elif isinstance(effect, Over):
                self._left_over.append(effect)
        return request

    def _remember(self, started: Started, view: View, phase: checkpoint.Phase) -> None:
        agent = started.agent
        past = self._past.setdefault(agent, [])
        self._places[started.activation] = (agent, len(past))
        by = phase.seats.get(agent, agent)
        past.append(PastActivation(view, None, by=by, repeats=phase.repeats))

    def _plan(self, item: PendingStart | RunningActivation) -> None:
        """Remember a pending start or end, in the order of beginning."""
        if isinstance(item, PendingStart):
            key = ("start", item.agent)
        else:
            key = ("end", item.started.activation)
        self.agenda.pop(key, None)  # so that the new one stands at the end
        self.agenda[key] = item

    def _set_decision(self, end: End, outputs: tuple[Output, ...]) -> None:
        agent, place = self._places[end.activation]
        self._past[agent][place] = replace(self._past[agent][place], end=end, outputs=outputs)

    # --- what comes after the moment ---

    @property
    def running(self) -> set[str]:
        """The activations in progress."""
        return {name for kind, name in self.agenda if kind == "end"}

    def moment(
        self,
        setup: Setup,
        tape: RecordedRequests,
        planned: Sequence[ExternalInput] = (),
        again: Mapping[str, str | None] | None = None,
    ) -> checkpoint.Checkpoint:
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
        ends, emits, stacks, outside = _later_inputs(
            tape, self.running - again.keys(), self._places.keys() - again.keys(), setup
        )
        agenda: list[PendingStart | RunningActivation] = []
        for item in self.agenda.values():
            if isinstance(item, RunningActivation):
                if end := ends.get(item.started.activation):
                    outputs = tuple(tape.output(emits[name]) for name in end.outputs)
                    stack = stacks.get(end.activation, "")
                    item = replace(item, end=end, outputs=outputs, stack=stack)
                    self._set_decision(end, outputs)
                else:  # its agent will be asked again
                    self._past[item.started.agent].pop()
                    note = again.get(item.started.activation)
                    item = item if note is None else replace(item, view=with_note(item.view, note))
            agenda.append(item)
        last = tape.behind  # the recording was read to its end, and says nothing of later moments
        assert last is not None
        unrecorded_us = last.us + isinstance(last, records.Finish)
        return checkpoint.Checkpoint(
            replace(setup, limit_s=setup.limit_s + now.wait_s),
            driver.host, driver.clock, driver.us, agenda, [*planned, *outside], self._past,
            self._left_over, unrecorded_us, self.phases,
        )  # fmt: skip


def _later_inputs(
    tape: RecordedRequests, running: set[str], begun: Collection[str], setup: Setup
) -> tuple[dict[str, End], dict[str, Emit], dict[str, str], list[ExternalInput]]:
    """The later records to repeat: ends of running activations, inputs from outside."""
    ends: dict[str, End] = {}
    emits: dict[str, Emit] = {}
    stacks: dict[str, str] = {}
    outside: list[ExternalInput] = []
    before = tape.behind
    for record in tape.later():
        stack = _stack_in(record)
        failed = stack.get("activation")
        if isinstance(record, End) and record.activation in running:
            ends[record.activation] = record
        elif isinstance(record, Emit) and record.by in ends:
            emits[record.event] = record
        elif failed in running:
            stacks[str(failed)] = str(stack.get("text"))
        elif not (
            setup.is_host_made(record)
            or is_healed(record, before)
            or record.t in tape.omitted
            or (isinstance(record, IncidentRow) and _is_host_made(record, running))
            or (failed is not None and failed not in begun)
        ):
            action = request_from_outside(record, tape)
            if action is not None:
                about = {"record": record.t, "kind": record.kind}
                repeat = repeatable("could not be repeated", about, action)
                outside.append(ExternalInput(record.us, record.t, repeat))
        before = record
    # The agent of an activation whose outputs were cut off is asked again.
    complete = {name: end for name, end in ends.items() if emits.keys() >= set(end.outputs)}
    return complete, emits, stacks, outside


def _stack_in(record: Record) -> Mapping[str, Any]:
    """The detail of an incident with a stack trace; of another record, nothing."""
    detail = record.detail if isinstance(record, IncidentRow) and record.what == STACK else None
    if isinstance(detail, dict) and isinstance(detail.get("activation"), str):
        return detail
    return {}


def _is_host_made(record: IncidentRow, running: set[str]) -> bool:
    """Whether a host writes an incident by itself, and perhaps otherwise in a fork."""
    detail = record.detail if isinstance(record.detail, dict) else {}
    if record.what == records.WAITS:
        return detail.get("activation") not in running
    if record.what == records.REQUEST_FAILED:
        # A guess: a host that lets a request fail says why, other writers need not.
        return bool(detail.get("error") or detail.get("activation"))
    return record.what == GAVE_UP


def repeatable(incident: str, about: Mapping[str, Any], request: Request) -> Request:
    """A request, or an incident if the request has become impossible.

    Args:
        incident: The kind of the incident.
        about: The detail of the error besides the reason.
        request: The request.
    """

    def repeat(monitor: Monitor) -> list[Effect]:
        try:
            return request(monitor)
        except (DecisionError, PayloadError, RequestError) as error:
            return monitor.incident(incident, {**about, "why": str(error)})

    return repeat
