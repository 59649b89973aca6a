"""The monitor's pen: writes records, has them looked at, and collects what a host has to do.

The monitor and its parts (`dig.monitor.healing`, `dig.monitor.release`) act on the graph through it
alone, so a record is always applied, written down and looked at, in this order, and its effect
comes after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector
from dig.detectors.watch import Watch
from dig.errors import RequestError
from dig.graph import records
from dig.graph.records import SYSTEM, Record, micros

from .messages import Answered, Delivered, Effect, Output, Over, Raised, Wake
from .payloads import Postbox
from .sinks import Followers, Sink, Sweep

LEFT = "The agent that was to get this back has left: it is taken as it is."


class Numbered:
    """The default source of ids: `e1`, `e2`, ... for events, `a1`, `a2`, ... for activations."""

    def __init__(self) -> None:
        """Begin at one."""
        self._counts: dict[str, int] = {}

    def __call__(self, prefix: str) -> str:
        """The next id with a prefix."""
        number = self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return f"{prefix}{number}"


class Ledger:
    """Everything that is written in one run, and what follows from it for the host.

    Attributes:
        graph: The graph.
        detector_seconds: How long each detector has looked, by pattern.
        post: What the events carry that are still on their way.
        new_id: Makes an id from the prefix `e` (event) or `a` (activation).
        now: The moment of the call in progress, in microseconds.
        found: What was raised and is not treated yet, with the record that tells of it.
        held: The events that wait for their release by the call, in order.
        ready: The agents that wait to be started.
        arrived: The agents that got an event since the start of their activation.
        diverted: The final events that were sent elsewhere, so that they cannot be accepted.
        is_closed: Whether only the end may follow, because a part or the sink has failed.
    """

    def __init__(
        self,
        detectors: Sequence[Detector],
        clock: Callable[[], float],
        sink: Sink,
        new_id: Callable[[str], str],
        stopwatch: Callable[[], float] | None,
        fail_closed: bool,
    ) -> None:
        """Begin with an empty graph; `dig.monitor.monitor.Monitor` describes the arguments."""
        self._watch = Watch(detectors, on_fault=self._remember, stopwatch=stopwatch)
        self._clock = clock
        self._sink = Followers(sink)
        self._fail_closed = fail_closed
        self._faults: list[tuple[str, str]] = []
        self._effects: list[Effect] = []
        self._is_broken = False  # the sink has failed: nothing can be written any more
        self.graph = self._watch.graph
        self.detector_seconds: Mapping[str, float] = self._watch.seconds
        self.post = Postbox(self.graph)
        self.new_id = new_id
        self.now = 0
        self.found: list[tuple[int, Finding]] = []
        self.held: dict[str, None] = {}
        self.ready: dict[str, None] = {}
        self.arrived: dict[str, None] = {}
        self.diverted: set[str] = set()
        self.is_closed = False

    # --- the call in progress ---

    def look_at_clock(self) -> None:
        """Take the time of the call, and tell what clocks raise up to it.

        A clock that falls stands still here.
        """
        self.now = max(self.now, micros(self._clock()))
        found = self._watch.advance(self.now)
        self._own_up()
        self.tell(found)

    def must_be_open(self) -> None:
        """Refuse what cannot be asked any more.

        Raises:
            RequestError: The run is over.
        """
        if self.is_over:
            raise RequestError("the run is over")

    @property
    def is_over(self) -> bool:
        """Whether nothing may be asked any more but the end."""
        return self.is_closed or self.graph.is_over or self.graph.finished is not None

    @property
    def can_write(self) -> bool:
        """Whether the trace goes on: it has no last record, and the sink works."""
        return self.graph.finished is None and not self._is_broken

    def deadline(self) -> int | None:
        """The moment of the next finding if nothing comes before, in microseconds."""
        return self._watch.due

    def effect(self, effect: Effect) -> None:
        """Have the host do something when the call returns."""
        self._effects.append(effect)

    def drain(self) -> list[Effect]:
        """What the host has to do, in order."""
        effects, self._effects = self._effects, []
        return effects

    def let_go(self, keep: int, pinned: Iterable[str]) -> None:
        """Let go of closed history, and of what is kept about it here."""
        pinned = frozenset((*self.held, *pinned, *self._watch.awaited()))
        sweep = Sweep(self.graph.t, keep, pinned, self.graph.evict(keep, pinned))
        self.post.let_go()
        self.diverted = {event for event in self.diverted if event in self.post}
        self._watch.forget()
        try:
            self._sink.let_go(sweep)
        except Exception as error:  # who keeps what it could forget stops no team
            self._faults.append(("a follower", f"raised {error!r}"))
        self._own_up()

    def wants_again(self, agent: str, inputs: Sequence[str]) -> bool:
        """Whether an agent whose activation ended is to be started again."""
        buffer = self.graph.agents[agent].buffer
        kept = sum(event in buffer for event in inputs)
        return bool(buffer) and (agent in self.arrived or 0 < kept < len(inputs))

    def wake(self, agent: str) -> None:
        """Have an agent started."""
        if agent not in self.ready:
            self.ready[agent] = None
            self.effect(Wake(agent))

    # --- records ---

    def follow(self, sink: Sink) -> None:
        """Have every record given to somebody else too, after it was written.

        Raises:
            RequestError: It is too late: more than the first record was written already.
        """
        if self.graph.t > 0:
            raise RequestError("a run can only be followed from its first record on")
        self._sink.add(sink)
        sink(self.graph.run)

    def stamp(self) -> tuple[int, int]:
        """The next record's logical and wall time."""
        return self.graph.t + 1, self.now

    def write(self, record: Record) -> None:
        """Apply a record, write it down, and tell what it raised.

        What the sink raises goes to the host: without a journal no effect may happen.
        """
        found = self._watch.apply(record)
        try:
            self._sink(record)
        except BaseException:
            self._is_broken = self.is_closed = True
            self._effects.clear()
            raise
        found += self._watch.look(record)
        self.post.tidy()
        self._own_up()
        self.tell(found)

    def tell(self, found: Iterable[Finding]) -> None:
        """Write findings down, to be treated later in the call."""
        for finding in found:
            t, us = self.stamp()
            what = (finding.pattern, finding.stage, finding.subject, finding.evidence)
            self.found.append((t, finding))
            self.effect(Raised(finding))
            self.write(records.FindingRow(t, us, *what))

    def emit(
        self, name: str, by: str | None, sender: str | None, output: Output, to: tuple[str, ...]
    ) -> None:
        """Generate an event; its output's payload is plain and its own by now."""
        self.post.put(name, sender, output)
        decides = output.policy is not None and not output.final
        policy = type(output.policy).__name__ if decides else None
        t, us = self.stamp()
        self.write(
            records.Emit(
                t, us, name, by, to, output.type, output.final, output.payload, policy,
                output.traceparent,
            )
        )  # fmt: skip

    def emit_system(self, note: str, to: tuple[str, ...], name: str | None = None) -> None:
        """Make a system event, and hold it."""
        name = name or self.new_id("e")
        self.emit(name, SYSTEM, SYSTEM, Output(note, to, SYSTEM), to)
        self.held[name] = None

    def redirect(self, event: str, to: tuple[str, ...], *, hold: bool = True) -> None:
        """Replace whom an event is on its way to, and hold it, unless it is to arrive later."""
        if self.graph.event(event).final:
            self.diverted.add(event)
        self.write(records.Redirect(*self.stamp(), event, to))
        if hold:
            self.held[event] = None
        else:
            self.held.pop(event, None)

    def take_as_it_is(self, event: str) -> None:
        """An answer was on its way back to an agent that has left: it counts after all."""
        if event in self.post and not self.graph.event(event).flight:
            self.diverted.discard(event)
            self.post.add_note(event, LEFT, None)
            self.held[event] = None

    def expire(self, event: str) -> None:
        """Call an event back for good."""
        self.write(records.Expire(*self.stamp(), event))

    def deliver(self, event: str, agent: str) -> None:
        """Put an event into a buffer."""
        self.write(records.Deliver(*self.stamp(), event, agent))
        self.effect(Delivered(agent, event))
        if self.graph.agents[agent].activation is None:
            self.wake(agent)
        else:
            self.arrived[agent] = None

    def accept(self, event: str) -> None:
        """Hand a final event to the environment."""
        shown = self.post.pending(event)
        answered = Answered(event, shown.payload, self.graph.asked(event), shown.notes)
        self.write(records.Deliver(*self.stamp(), event, None))
        self.effect(answered)
        if self.graph.is_over:
            self.effect(Over("submitted"))

    def incident(self, what: str, detail: Any) -> None:
        """Write an incident down."""
        self.write(records.IncidentRow(*self.stamp(), what, detail))

    def fault(self, who: str, what: str) -> None:
        """A part that was handed in has failed: write it down, and stop if that was asked."""
        self.incident("failed", {"who": who, "what": what})
        if self._fail_closed and not self.is_closed:
            self.is_closed = True
            self.effect(Over("error"))

    def _own_up(self) -> None:
        while self._faults:
            self.fault(*self._faults.pop(0))

    def _remember(self, detector: str, what: str) -> None:
        # Told of in the middle of a record; written down after it.
        self._faults.append((f"detector {detector}", what))
