"""Drives a monitor through a recorded run, request by request, and compares what it writes.

The records contain all inputs of the monitor, with their times: events from outside, starts,
decisions, joins and leaves. They contain its outputs, too, which must come out again byte by byte.
A replay needs nothing else: no clock, no randomness, no agent, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from dig.detectors.interventions import (
    Act,
    Inject,
    Intervention,
    Reroute,
    action_of,
)
from dig.detectors.notes import as_system_event
from dig.detectors.watch import Timing
from dig.errors import (
    CutOffError,
    DecisionError,
    DivergenceError,
    PayloadError,
    ReplayError,
    RequestError,
    RuleError,
)
from dig.graph.codec import encode
from dig.graph.graph import InteractionGraph
from dig.graph.records import (
    ASIDE,
    EDITION,
    FAILED,
    LEFT_OUT,
    TRIED_AGAIN,
    WAITS,
    Emit,
    End,
    FindingRow,
    Finish,
    IncidentRow,
    Join,
    Leave,
    Record,
    Redirect,
    Run,
    Start,
)
from dig.monitor.approvals import DECIDED, PERSON
from dig.monitor.healing import REPLACED
from dig.monitor.messages import Effect, Output, Started
from dig.monitor.monitor import TOLD, Monitor
from dig.monitor.sanitize import are_names
from dig.monitor.sinks import Sink
from dig.runtime.checkpoint import Clock
from dig.runtime.host import Host, Setup
from dig.traces.journal.chain import SealedLines, bare

from .deliveries import released
from .requests import (
    DOWNGRADED,
    PREVENTED,
    REHEARSED,
    Recorded,
    RecordedRequests,
    is_about_findings,
)

Outputs = tuple[Output, ...]

OWN_INCIDENTS = (
    TRIED_AGAIN, LEFT_OUT, "gate deadline passed", PREVENTED, DOWNGRADED, DECIDED,
    REPLACED, REHEARSED,
)  # fmt: skip
"""The incidents that a monitor records by itself, besides `failed` and `waits`."""


_SLOW = {"who", "what", "place", "off_s"}


class Edit:
    """Changes to recorded requests during a replay; this base class changes nothing."""

    def decision(self, end: End, outputs: Outputs) -> tuple[End, Outputs]:
        """The decision of an activation and its outputs."""
        return end, outputs

    def event(self, emit: Emit, output: Output) -> Output:
        """The content of an event of an activation, or from outside."""
        return output

    def recipients(self, redirect: Redirect) -> tuple[str, ...]:
        """The new recipients to whom a host redirects an event."""
        return redirect.to


class Done(NamedTuple):
    """A request that was made: its record and effects; for an end, its outputs and delay."""

    record: Record
    effects: list[Effect]
    again_s: float | None = None
    outputs: Outputs = ()


class ReplayDriver:
    """Drives a monitor through a recorded run.

    Attributes:
        host: The host with the monitor.
        clock: The monitor's clock.
        us: The moment of the latest request, in microseconds.
        started: The activations in progress, by id.
        same: The number of records that equalled the recorded ones.
        edition: The edition of the patterns by which the findings of the run were made.
    """

    def __init__(
        self,
        tape: RecordedRequests,
        setup: Setup,
        *,
        sink: Sink = lambda record: None,
        free_from: int | None = None,
        edit: Edit | None = None,
    ) -> None:
        """Begin with the first record.

        Args:
            tape: The recorded run.
            setup: The parts that the run was made with.
            sink: Receives every record after its comparison; by default none does.
            free_from: The first record that may differ; ``None``: all must be equal.
            edit: The change to make; ``None``: none.

        Raises:
            ReplayError: The run cannot be driven again.
            DivergenceError: Another first record came out.
        """
        first = tape.ahead()
        if first is None or not isinstance(first.record, Run):
            raise ReplayError(f"{tape.path}: the first record is not of kind `run`")
        if setup.gates:
            raise ReplayError("the run has gates; what they decided is not recorded")
        self._tape = tape
        self._sink = sink
        self._free_from = free_from
        self._edit = edit or Edit()
        self._lines = None if tape.header is None else SealedLines(tape.header)
        self.us = self.same = 0
        self.started: dict[str, Started] = {}
        self.clock = Clock()
        self.clock.source = lambda: self.us / 1_000_000
        names = first.record.agents
        self.edition = first.record.patterns
        copied = None if self.edition == EDITION else self._copied
        timing = Timing(recorded=self._slow, copied=copied)
        try:
            monitor = setup.monitor(names, self.clock, self._take, timing, fit=self._fit)
        except RuleError as error:
            raise self._diverges(first, f"the monitor refuses it: {error}") from None
        self.host = Host(setup, monitor)

    def step(self) -> Done | None:
        """Make the request that led to the next record; ``None`` if there is none.

        Raises:
            DivergenceError: Another record came out.
            ReplayError: The request cannot be made again.
            CutOffError: The recorded run ends within the records of this request.
        """
        recorded = self._tape.ahead()
        if recorded is None:
            return None
        before = self.host.monitor.graph.t
        self.us = max(self.us, recorded.record.us)
        try:
            done = self._request(recorded.record)
        except (DecisionError, PayloadError, RequestError, RuleError) as error:
            raise self._diverges(recorded, f"the monitor refuses it: {error}") from None
        if self.host.monitor.graph.t == before:
            raise self._diverges(recorded, "nothing, since nothing leads to it")
        return done

    # --- requests ---

    def _request(self, record: Record) -> Done:
        monitor = self.host.monitor
        if isinstance(record, Start):
            return Done(record, self._start(record))
        if isinstance(record, End):
            return self._end(record)
        request = request_from_outside(record, self._tape, self._edit)
        if request is not None:
            effects = request(monitor)
        elif (finish := self._finish_after(record)) is not None:
            effects = monitor.finish(finish.outcome, finish.answer, finish.usage)
        else:  # all other records without a request are due by time
            effects = monitor.tick()
        return Done(record, self.host.count_effects(effects))

    def _start(self, record: Start) -> list[Effect]:
        effects = self.host.count_effects(self.host.monitor.start(record.agent))
        for effect in effects:
            if isinstance(effect, Started):
                self.started[effect.activation] = effect
        return effects

    def _end(self, record: End) -> Done:
        started = self.started.get(record.activation)
        if started is None:
            raise RequestError(f"{record.activation!r} is no activation in progress")
        end, outputs = self._edit.decision(record, tuple(self._outputs(record)))
        effects, again_s = self.host.repeat(started, end, outputs)
        del self.started[record.activation]
        return Done(end, self.host.count_effects(effects), again_s, outputs)

    def _outputs(self, record: End) -> Iterator[Output]:
        """The outputs of an activation: the emits that follow its end."""
        count = 1
        for name in record.outputs:
            while (recorded := self._tape.ahead(count)) and isinstance(recorded.record, ASIDE):
                count += 1
            count += 1
            if recorded is None:
                yield self._cut_off(record)
            elif isinstance(recorded.record, Emit) and recorded.record.event == name:
                yield self._edit.event(recorded.record, self._tape.output(recorded.record))
            else:
                raise self._diverges(recorded, f"the `emit` of {name!r} must come first")

    def _cut_off(self, record: End) -> Output:
        """The stand-in for an output of which only the name was recorded."""
        if self._free_from is not None:
            raise ReplayError(
                f"the recorded run was cut off before all outputs of its record {record.t} were "
                f"there; what they were is not known: fork it at {record.t} or before"
            )
        return Output(None)

    def _finish_after(self, record: Record) -> Finish | None:
        """The end of the run, if it is this record or its time check raised the findings here."""
        if isinstance(record, Finish):
            return record
        count = 0
        while (recorded := self._tape.ahead(count)) is not None and recorded.record.us == record.us:
            finish = recorded.record
            if isinstance(finish, Finish):
                is_free = self._free_from is not None and finish.t >= self._free_from
                return None if is_free else finish
            # A host's incident is a request of its own, which comes before the end.
            if request_from_outside(finish, self._tape) or not isinstance(
                finish, FindingRow | IncidentRow
            ):
                break
            count += 1
        return None

    # --- records ---

    def _take(self, record: Record) -> None:
        """The monitor's sink: each record must equal the recorded one."""
        if self._free_from is None or record.t < self._free_from:
            recorded = self._tape.ahead()
            if isinstance(record, Run):  # what follows is by its edition, as far as it is recorded
                record = replace(record, patterns=self.edition)
            got = encode(record).encode() if self._lines is None else self._lines.line(record)
            if recorded is None:
                raise CutOffError("the recorded run ends here")
            text = recorded.text
            if self._lines is None:
                text = encode(recorded.record).encode()
            if got != text:
                raise self._diverges(recorded, bare(got))
            self._tape.pop()
            self.same += 1
        self._sink(record)

    def _fit(self, graph: InteractionGraph, wish: Act) -> tuple[Intervention | None, str | None]:
        """The `Fit` that reduces an intervention as in the recorded run.

        Only the adapter knows, for instance, whether its team can take a message back, and that
        may change from moment to moment. The trace has an incident for each reduction.
        """
        if self._free_from is not None and graph.t + 1 >= self._free_from:
            return wish, None
        row = self._recorded(graph.t + 1)
        if not (isinstance(row, IncidentRow) and row.what == DOWNGRADED):
            return wish, None
        detail = row.detail if isinstance(row.detail, dict) else {}
        return _lesser(graph, wish, detail), str(detail.get("reason"))

    def _recorded(self, t: int) -> Record | None:
        """The recorded row of a logical time that the request in progress may come to."""
        first = self._tape.ahead()  # those of the request are taken at its end
        recorded = first and self._tape.ahead(t - first.record.t)
        return None if recorded is None else recorded.record

    def _slow(self, t: int, us: int) -> Mapping[str, Any] | None:
        """What the recorded run says about a slow detector there; nobody is slow in a replay."""
        row = None if self._free_from is not None and t >= self._free_from else self._recorded(t)
        if not (isinstance(row, IncidentRow) and row.what == FAILED and row.us == us):
            return None
        is_slow = isinstance(row.detail, dict) and row.detail.keys() >= _SLOW
        return row.detail if is_slow else None

    def _copied(self, t: int, us: int) -> list[Record] | None:
        """What a run of another edition of the patterns says about findings there, in order."""
        if self._free_from is not None and t >= self._free_from:
            return None
        rows: list[Record] = []
        while (row := self._recorded(t + len(rows))) and is_about_findings(row) and row.us == us:
            if row.t == self._free_from:
                break
            rows.append(row)
        return rows

    def _diverges(self, recorded: Recorded, got: str) -> ReplayError:
        record = recorded.record
        if isinstance(record, IncidentRow) and record.what == FAILED:
            return ReplayError(
                f"record {record.t} says that a part of the monitor failed "
                f"({record.detail!r:.200}); why is not recorded, so it cannot be driven on here"
            )
        if isinstance(record, IncidentRow) and record.what == REHEARSED:
            return ReplayError(
                f"at record {record.t} the run tried several agents for a step of healing "
                "(--rehearse, which is no more), so it can be read and checked, but from there on "
                "it can be neither driven again nor forked"
            )
        return DivergenceError(record.t, bare(recorded.text), got)


def request_from_outside(
    record: Record, tape: RecordedRequests, edit: Edit | None = None
) -> Callable[[Monitor], list[Effect]] | None:
    """The request behind the record of an input from outside; ``None``: it is none.

    Args:
        record: The record; no redirect by healing.
        tape: The recorded run.
        edit: The change to make; ``None``: none.
    """
    edit = edit or Edit()
    match record:
        case Emit(by=None):
            output = edit.event(record, tape.output(record))
            return lambda monitor: monitor.inject(output)
        case Join():
            return lambda monitor: monitor.join(record.agent)
        case Leave():
            return lambda monitor: monitor.leave(record.agent)
        case Redirect() if record.t not in tape.policies.acts:
            to, again = edit.recipients(record), tape.sent_again(record.event)
            return lambda monitor: monitor.redirect(record.event, to, again)
        case IncidentRow() if (decision := _decision(record)) is not None:
            return lambda monitor: monitor.decide(*decision)
        case IncidentRow() if (told := _told(record)) is not None:
            return lambda monitor: monitor.tell(*told)
        case IncidentRow() if (event := released(record)) is not None:
            return lambda monitor: monitor.release(event)
        case IncidentRow() if not _is_own(record):
            return lambda monitor: monitor.incident(record.what, record.detail)
    return None


def _decision(record: IncidentRow) -> tuple[int, bool] | None:
    """A person's decision about healing: the finding's record, and whether to heal it."""
    detail = record.detail if isinstance(record.detail, dict) else {}
    if record.what != DECIDED or detail.get("by") != PERSON:
        return None
    row = detail.get("finding")
    return (row, detail.get("heal") is True) if type(row) is int else None


def _told(record: IncidentRow) -> tuple[str, tuple[str, ...]] | None:
    """The note that a person has written, and the agents that got it."""
    detail = record.detail if isinstance(record.detail, dict) else {}
    note, to = detail.get("note"), detail.get("to", ())
    if record.what != TOLD or not isinstance(note, str) or not are_names(to):
        return None
    return note, tuple(to)


def _is_own(incident: IncidentRow) -> bool:
    """Whether the monitor has written an incident itself, while it did what it was asked."""
    detail = incident.detail if isinstance(incident.detail, dict) else {}
    is_ours = not {"gates", "behind", "finding"}.isdisjoint(detail)  # else a host says what waits
    if incident.what == FAILED:  # by its kind and name; a host names a function that has raised
        return " " in str(detail.get("who"))
    return incident.what in OWN_INCIDENTS or (incident.what == WAITS and is_ours)


def _lesser(graph: InteractionGraph, wish: Act, detail: Mapping[str, Any]) -> Intervention | None:
    """The intervention that a host has carried out instead of the wish."""
    done = detail.get("instead")
    if done == "inject" and isinstance(wish, Reroute):
        return Inject(wish.event, wish.note)
    if done == "create" and isinstance(wish, Reroute):
        return as_system_event(graph, wish)
    if isinstance(wish, Reroute) and "to" in detail:
        wish = replace(wish, to=tuple(detail["to"]))
    return wish if done == action_of(wish) else None
