"""Drives a monitor through a recorded run, request by request, and compares the new records.

The records contain all inputs of the monitor, with their times: events from outside, starts,
decisions, joins and leaves. They contain its outputs, too, which must come out again byte by byte.
A replay needs nothing else: no clock, no randomness, no agent, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dig import errors
from dig.detectors.interventions import Act, Inject, Intervention, Reroute, action_of
from dig.detectors.notes import as_system_event
from dig.detectors.watch import Timing
from dig.errors import ReplayError, RequestError
from dig.graph import records
from dig.graph.chain import SealedLines, bare
from dig.graph.codec import encode
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, End, Finish, IncidentRow, Record, Start
from dig.monitor.approvals import DECIDED, PERSON
from dig.monitor.healing import REPLACED
from dig.monitor.messages import Effect, Output, Started
from dig.monitor.monitor import TOLD, Monitor
from dig.monitor.sanitize import Sanitizer, are_names
from dig.monitor.sinks import Eviction, FanOut, Sink
from dig.runtime.checkpoint import Clock
from dig.runtime.host import make_host
from dig.runtime.setup import Setup

from . import recorded_requests as requests
from .deliveries import released_event
from .edits import Outputs, RecordEdit
from .recorded_requests import Recorded, RecordedRequests

Request = Callable[[Monitor], list[Effect]]

OWN_INCIDENTS = (
    records.TRIED_AGAIN, records.LEFT_OUT, records.WORK_AFTER_ANSWER, "gate deadline passed",
    requests.PREVENTED, requests.DOWNGRADED, DECIDED, REPLACED,
)  # fmt: skip
"""The incidents that only a monitor records, besides `failed` and `waits`."""

_SLOW = {"who", "what", "place", "off_s"}


class DrivenRequest(NamedTuple):
    """A repeated request: record and effects; for an end, also outputs and delay."""

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
        lines: The lines of the journal, which go on after the latest one; ``None``: it is a plain
            trace.
        started: The activations in progress, by id.
        same: The number of records that equalled the recorded ones.
        latest: The recorded records of the latest request, each with its line; the line is empty if
            the record was missing at the end.
        is_live: Whether the requests come from a host now, and nothing is compared.
    """

    def __init__(
        self,
        tape: RecordedRequests,
        setup: Setup,
        *,
        sink: Sink = lambda record: None,
        free_from: int | None = None,
        edit: RecordEdit | None = None,
        completes: bool = False,
        timing: Timing | None = None,
        is_served: bool = False,
    ) -> None:
        """Begin with the first record.

        Args:
            tape: The recorded run.
            setup: The parts that the run was made with.
            sink: Receives every record after its comparison; by default none does.
            free_from: The first record that may differ; ``None``: all must be equal.
            edit: The edit of a record; ``None``: none.
            completes: Whether the last request is made even if some of its records are missing at
                the end of the run, as after a crash.
            timing: The clocks that time detectors once a host makes the requests; ``None``: none
                are timed.
            is_served: As for the host.

        Raises:
            ReplayError: The run cannot be driven again.
            DivergenceError: Another first record came out.
        """
        requests.check_edition(tape.run)
        if setup.gates:
            raise ReplayError("the run has gates; what they decided is not recorded")
        self._tape = tape
        self._sinks = FanOut(sink)
        self._free_from = free_from
        self._edit = edit
        self._completes = completes
        self._mask = Sanitizer(setup.redacts).mask
        self.lines = None if tape.header is None else SealedLines(tape.header)
        self.latest: list[tuple[Record, bytes]] = []
        self.is_live = False
        self.us = self.same = 0
        self.started: dict[str, Started] = {}
        self.clock = Clock()
        self.clock.source = lambda: self.us / 1_000_000
        wall, processor = (timing.wall, timing.processor) if timing else (None, None)
        timing = Timing(self._stopwatch(wall), self._stopwatch(processor), self._slow)
        try:
            monitor = setup.monitor(tape.run.agents, self.clock, self, timing, fit=self._adapt)
        except errors.RuleError as error:
            why = f"the monitor refuses it: {error}"
            raise errors.DivergenceError(0, encode(tape.run), why) from None
        self.host = make_host(setup, monitor, is_served=is_served)

    def step(self) -> DrivenRequest | None:
        """Make the request behind the next record; ``None`` at the end of the run.

        Raises:
            DivergenceError: Another record came out.
            ReplayError: The request cannot be made again.
            CutOffError: The recorded run ends within the records of this request.
        """
        recorded = self._tape.ahead()
        if recorded is None:
            return None
        before = self.host.monitor.graph.t
        self.latest = []
        self.us = max(self.us, recorded.record.us)
        refusals = errors.DecisionError, errors.PayloadError, RequestError, errors.RuleError
        try:
            request = self._request(recorded.record)
        except refusals as error:
            raise self._diverges(recorded, f"the monitor refuses it: {error}") from None
        if self.host.monitor.graph.t == before:
            raise self._diverges(recorded, "nothing, since nothing leads to it")
        return request

    # --- requests ---

    def _request(self, record: Record) -> DrivenRequest:
        monitor = self.host.monitor
        if isinstance(record, End):
            return self._end(record)
        if isinstance(record, Start):
            effects = monitor.start(record.agent)
            self.started |= {
                effect.activation: effect for effect in effects if isinstance(effect, Started)
            }
        elif request := request_from_outside(record, self._tape, self._edit):
            effects = request(monitor)
        elif finish := self._finish_after(record):
            effects = monitor.finish(finish.outcome, finish.answer, finish.usage)
        else:  # all other records without a request are due by time
            effects = monitor.tick()
        return DrivenRequest(record, self.host.count_effects(effects))

    def _end(self, end: End) -> DrivenRequest:
        started = self.started.get(end.activation)
        if started is None:
            raise RequestError(f"{end.activation!r} is no activation in progress")
        outputs = tuple(self._outputs(end))
        if self._edit:
            end, outputs = self._edit.decision(end, outputs)
        effects, again_s = self.host.repeat_end(started, end, outputs)
        del self.started[end.activation]
        return DrivenRequest(end, self.host.count_effects(effects), again_s, outputs)

    def _outputs(self, record: End) -> Iterator[Output]:
        """The outputs of an activation: the emits after the end."""
        count = 1
        for name in record.outputs:
            while (recorded := self._tape.ahead(count)) and isinstance(
                recorded.record, records.ASIDE
            ):
                count += 1
            count += 1
            if recorded is None and (self._completes or self._free_from is not None):
                way = "it can go on" if self._completes else f"fork it at {record.t} or"
                raise ReplayError(
                    f"the recorded run was cut off before all outputs of its record {record.t} "
                    f"were there; what they were is not known: {way} before"
                )
            if recorded is None:
                yield Output(None)  # a stand-in: the journal of the run ends before this record
            elif isinstance(recorded.record, Emit) and recorded.record.event == name:
                output = self._tape.output(recorded.record)
                yield self._edit.event(recorded.record, output) if self._edit else output
            else:
                raise self._diverges(recorded, f"the `emit` of {name!r} must come first")

    def _finish_after(self, record: Record) -> Finish | None:
        """The end of the run, if reached here or if its time check raised the findings here."""
        if isinstance(record, Finish):
            return record
        count = 0
        while (recorded := self._tape.ahead(count)) is not None and recorded.record.us == record.us:
            later = recorded.record
            if isinstance(later, Finish):
                return None if self._is_free(later.t) else later
            # A host's incident is a request of its own, which comes before the end.
            if request_from_outside(later, self._tape) or not isinstance(
                later, records.FindingRow | IncidentRow
            ):
                break
            count += 1
        return None

    # --- records ---

    def __call__(self, record: Record) -> None:
        """Take a record of the monitor, like `write`."""
        self.write([record])

    def write(self, rows: Sequence[Record]) -> None:
        """Take the records of a request, and compare each with the recorded record.

        Raises:
            DivergenceError: Another record came out.
            CutOffError: The recorded run ends within these records.
        """
        self._sinks.write(rows if self.is_live else [self._compare(record) for record in rows])

    def reads(self, graph: InteractionGraph) -> None:
        """Give the graph to the sinks behind."""
        self._sinks.reads(graph)

    def evicted(self, eviction: Eviction) -> None:
        """Tell the sinks behind of an eviction."""
        self._sinks.evicted(eviction)

    def go_live(self, *sinks: Sink) -> None:
        """Compare nothing any more, and give the records from here on to further sinks, too."""
        self.is_live = True
        for sink in sinks:
            self._sinks.add(sink)
            FanOut(sink).reads(self.host.monitor.graph)

    def _stopwatch(self, clock: Callable[[], float] | None) -> Callable[[], float] | None:
        """Return a clock at 0 until a host makes the requests: before, no detector is slow."""
        if clock is None:
            return None
        began = clock()
        return lambda: clock() - began if self.is_live else 0.0

    def _is_free(self, t: int) -> bool:
        return self.is_live or (self._free_from is not None and t >= self._free_from)

    def _compare(self, record: Record) -> Record:
        """Compare a record with the recorded record, unless free to differ; return the record."""
        if self._is_free(record.t):
            return record
        recorded = self._tape.ahead()
        if recorded is None and self._completes:
            self.latest.append((record, b""))
            return record
        if recorded is None:
            raise errors.CutOffError("the recorded run ends here")
        if self.lines is None:
            # The lines of a plain trace may be written otherwise, with blanks for instance.
            line, text = encode(record).encode(), encode(recorded.record).encode()
        else:
            line = self.lines.line(record, keeps_payload=not recorded.is_lightened)
            text = recorded.text
            self.lines.blobs.clear()  # they lie beside the recorded run
        if line != text:
            raise self._diverges(recorded, bare(line))
        self._tape.pop()
        self.same += 1
        self.latest.append((record, line))
        return record

    def _adapt(self, graph: InteractionGraph, wish: Act) -> tuple[Intervention | None, str | None]:
        """Reduce an intervention as in the recorded run, or put in the edit.

        Only the adapter knows, for instance, whether its team can take a message back, and that
        may change from moment to moment. The trace has an incident for each reduction.
        """
        row = self._recorded_row(graph.t + 1)
        is_reduced = isinstance(row, IncidentRow) and row.what == requests.DOWNGRADED
        if self._edit:  # the record of the intervention comes after that incident
            wish = self._edit.intervention(graph.t + 1 + is_reduced, wish, self._mask)
        if not (is_reduced and isinstance(row, IncidentRow)):
            return wish, None
        detail = row.detail if isinstance(row.detail, dict) else {}
        return _reduce(graph, wish, detail), str(detail.get("reason"))

    def _recorded_row(self, t: int) -> Record | None:
        """The recorded row of a logical time; ``None`` from where on the run is free."""
        if self._is_free(t):
            return None
        first = self._tape.ahead()  # the records of a request are taken at its end
        recorded = first and self._tape.ahead(t - first.record.t)
        return None if recorded is None else recorded.record

    def _slow(self, t: int, us: int) -> Mapping[str, Any] | None:
        """The recorded detail about a slow detector; no detector is slow in a replay itself."""
        row = self._recorded_row(t)
        if not (isinstance(row, IncidentRow) and row.what == records.FAILED and row.us == us):
            return None
        is_slow = isinstance(row.detail, dict) and row.detail.keys() >= _SLOW
        return row.detail if is_slow else None

    def _diverges(self, recorded: Recorded, line: str) -> ReplayError:
        record = recorded.record
        if isinstance(record, IncidentRow) and record.what == records.FAILED:
            return ReplayError(
                f"record {record.t} says that a part of the monitor failed "
                f"({record.detail!r:.200}); why is not recorded, so it cannot be driven on here"
            )
        return errors.DivergenceError(record.t, bare(recorded.text), line)


def request_from_outside(
    record: Record, tape: RecordedRequests, edit: RecordEdit | None = None
) -> Request | None:
    """The request behind the record of an input from outside; ``None``: the record has none.

    Args:
        record: The record; no redirect by healing.
        tape: The recorded run.
        edit: The edit of a record; ``None``: none.
    """
    match record:
        case Emit(by=None):
            output = tape.output(record)
            output = edit.event(record, output) if edit else output
            return lambda monitor: monitor.inject(output)
        case records.Join():
            return lambda monitor: monitor.join(record.agent)
        case records.Leave():
            return lambda monitor: monitor.leave(record.agent)
        case records.Redirect() if not tape.is_act_of_policy(record):
            to = edit.recipients(record) if edit else record.to
            payload = tape.redirected.get(record.event)
            return lambda monitor: monitor.redirect(record.event, to, payload)
        case IncidentRow():
            return _request_of_incident(record)
    return None


def _request_of_incident(record: IncidentRow) -> Request | None:
    """The request of a person or a host; ``None`` if the monitor wrote the incident by itself."""
    detail = record.detail if isinstance(record.detail, dict) else {}
    is_decision = record.what == DECIDED and detail.get("by") == PERSON
    if is_decision and type(finding := detail.get("finding")) is int:
        return lambda monitor: monitor.decide(finding, detail.get("heal") is True)
    note, to = detail.get("note"), detail.get("to", ())
    if record.what == TOLD and isinstance(note, str) and are_names(to):
        return lambda monitor: monitor.tell(note, tuple(to))
    if (event := released_event(record)) is not None:
        return lambda monitor: monitor.release(event)
    # The monitor names a part by kind and name, a host the function that has raised; and of waits
    # the monitor names what waits behind, a host only what waits.
    if record.what == records.FAILED:
        is_own = " " in str(detail.get("who"))
    else:
        is_about_parts = not {"gates", "behind", "finding"}.isdisjoint(detail)
        is_own = record.what in OWN_INCIDENTS or (record.what == records.WAITS and is_about_parts)
    return None if is_own else lambda monitor: monitor.incident(record.what, record.detail)


def _reduce(graph: InteractionGraph, wish: Act, detail: Mapping[str, Any]) -> Intervention | None:
    """The intervention carried out by a host instead of the wish."""
    action = detail.get("instead")
    if action == "inject" and isinstance(wish, Reroute):
        return Inject(wish.event, wish.note)
    if action == "create" and isinstance(wish, Reroute):
        return as_system_event(graph, wish)
    if isinstance(wish, Reroute) and "to" in detail:
        wish = replace(wish, to=tuple(detail["to"]))
    return wish if action == action_of(wish) else None
