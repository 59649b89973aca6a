"""How each kind of record rewrites the graph (paper, section 4.2).

`dig.rules` has let a record pass before it gets here, so nothing is checked again. Only
`InteractionGraph.apply` calls this.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import cast

from . import records
from .history import ACCEPTED, BOUNCED, BY_SYSTEM, CONSUMED, FROM_OUTSIDE, History
from .lineage import Answer, answer
from .problems import BUFFERED, FLYING, Problems
from .ranges import NOTHING, RangeSet, union
from .records import FATES, SYSTEM, Fate, Record
from .state import Activation, Agent, Event, by_number


class Rewrites:
    """The state of a graph, and one method a kind of record that changes it.

    Attributes:
        t: Logical time, the latest record's; -1 before the first.
        now: Wall time of the latest record in microseconds since the run began.
        run: The first record.
        history: Everything that has happened, as arrays.
        problems: What concerns which problem.
        touched: The events whose place the latest record may have changed.
        ended: The activation that the latest record ended, if it did.
        finished: The last record of the run, once it is there.
        is_over: Whether a final event was accepted, and the run is no session.
        awaited: The outputs of the latest end that are still to be emitted, the next one last.
        findings: Logical time of every record of kind `finding`, in order.
        latest_answer: What stands behind the final event that was looked at last.
    """

    run: records.Run

    def __init__(self) -> None:
        self.t = -1
        self.now = 0
        self.history = History()
        self.touched: list[Event] = []
        self.ended: Activation | None = None
        self.finished: records.Finish | None = None
        self.is_over = False
        self.awaited: list[str] = []
        self.findings = array("q")
        self.latest_answer: Answer | None = None
        self._emitter = -1
        self._seen_last: dict[str, Event] = {}  # what the activation that ended last saw
        self._lineage: tuple[RangeSet, RangeSet] = (NOTHING, NOTHING)
        self._agents: dict[str, Agent] = {}
        self._activations: dict[str, Activation] = {}
        self._live: dict[str, Event] = {}
        self._open: dict[str, Event] = {}

    def event(self, name: str) -> Event:
        """An event by its id; a closed one is put together from history.

        Raises:
            KeyError: No event has this id.
        """
        event = self._live.get(name) or self._seen_last.get(name)
        if event is None:
            n = self.history.event(name)
            if n is None:
                raise KeyError(name)
            event = Event(self.history, name, n)
        return event

    def rewrite(self, record: Record) -> None:
        """Rewrite the graph by a record that the rules have let pass."""
        self.touched = []
        self.ended = None
        if self.t >= 0:
            self.problems.touched = {}
        self.now = record.us
        rewrite = _REWRITES.get(type(record))
        if rewrite is not None:
            rewrite(self, record)
        self.t = record.t

    # --- one method a kind ---

    def _begin(self, record: records.Run) -> None:
        self.run = record
        self.problems = Problems(self.history, record.session)
        self._agents = {name: Agent(name) for name in record.agents}

    def _emit(self, record: records.Emit) -> None:
        h = self.history
        if record.by is None:
            lineage = NOTHING, RangeSet.single(len(h.source_events))
            n = h.add_event(record, FROM_OUTSIDE)
        elif record.by == SYSTEM:
            lineage = NOTHING, NOTHING
            n = h.add_event(record, BY_SYSTEM)
        else:
            self.awaited.pop()
            lineage = self._lineage
            n = h.add_event(record, self._emitter)
        event = Event(h, record.event, n, lineage)
        if record.by is None:
            self.problems.pose(event.work)
        self._live[event.id] = event
        if event.final:
            self.problems.submit(event)
        else:
            self._send(event, record.to)
        self._place(event, "no_recipient")

    def _deliver(self, record: records.Deliver) -> None:
        event = self._revive(record.event)
        if record.to is None:
            self._accept(event)
        else:
            agent = self._agents[record.to]
            del event.flight[agent.name], agent.incoming[event.id]
            event.copies[agent.name] = None
            agent.put(event)
            if event.final:
                self.history.flags[event.n] |= BOUNCED
                self.problems.decide(event)
        self._place(event, None)

    def _accept(self, event: Event) -> None:
        self._land(event)
        self.history.flags[event.n] |= ACCEPTED
        self.problems.decide(event)
        if self.run.session:
            self.problems.settle(answer(self, event.n))
            self.latest_answer = None  # something behind it may be settled now
        else:
            self.is_over = True

    def _start(self, record: records.Start) -> None:
        agent = self._agents[record.agent]
        inputs = tuple(agent.buffer.values())
        activation = Activation(record.activation, agent.name, inputs, record.us)
        activation.n = self.history.add_activation(
            activation.id, agent.name, record.t, [event.n for event in inputs]
        )
        agent.activation = self._activations[activation.id] = activation
        self.problems.started(activation)

    def _end(self, record: records.End) -> None:
        activation = self._activations.pop(record.activation)
        agent = self._agents[activation.agent]
        agent.activation = None
        named = {fate.event: fate for fate in record.fates}
        fates = [named.get(event.id) or implied_fate(event) for event in activation.inputs]
        h = self.history
        codes = [FATES.index(fate.fate) for fate in fates]
        h.end_activation(activation.n, record.t, codes, len(record.outputs))
        self._inherit(activation, fates)
        if 0 < len(record.outputs) <= len(activation.consumed):
            h.solve(activation.n, (event.n for event in activation.consumed))
        for event, fate in zip(activation.inputs, fates, strict=True):
            if fate.fate != "delay":
                self._take(agent, event, fate)
        self.awaited = list(reversed(record.outputs))
        activation.is_progress = bool(record.outputs) or any(f.fate != "delay" for f in fates)
        self.problems.ended(activation)
        self.ended = activation
        self._seen_last = {event.id: event for event in activation.inputs}

    def _inherit(self, activation: Activation, fates: list[Fate]) -> None:
        """What the outputs of an activation inherit: its roots and its sources."""
        inputs = [
            event
            for event, fate in zip(activation.inputs, fates, strict=True)
            if fate.fate == "consume" and event.by != SYSTEM
        ]
        activation.consumed = inputs
        roots = union(event.roots for event in inputs)
        if inputs and not roots:
            roots = self.history.new_root(activation.n)
        self._emitter = activation.n
        self._lineage = (roots, union(event.sources for event in inputs))

    def _take(self, agent: Agent, event: Event, fate: Fate) -> None:
        """Take an event out of a buffer, and on to where its fate sends it."""
        agent.take(event)
        del event.copies[agent.name]
        if fate.fate == "consume":
            event.consumed = True
            event.cause = None
            event.reroutes = []
            self.history.flags[event.n] |= CONSUMED
        elif fate.fate == "reroute":
            if not event.consumed:
                event.reroutes.append(agent.name)
            self._send(event, fate.to)
        else:
            event.discarded_by[agent.name] = None
        self._place(event, "discarded" if fate.fate == "discard" else "no_recipient")

    def _join(self, record: records.Join) -> None:
        self._agents[record.agent] = Agent(record.agent)

    def _leave(self, record: records.Leave) -> None:
        agent = self._agents.pop(record.agent)
        if agent.activation is not None:
            self.problems.cut_off(self._activations.pop(agent.activation.id))
        lost = {**agent.buffer, **agent.incoming}
        for event in sorted(lost.values(), key=by_number):
            event.copies.pop(agent.name, None)
            event.flight.pop(agent.name, None)
            self._place(event, "left")

    def _redirect(self, record: records.Redirect) -> None:
        event = self._revive(record.event)
        since = event.flight
        self._land(event)
        self._send(event, record.to)
        for name in event.flight.keys() & since.keys():
            event.flight[name] = since[name]
        self._place(event, "no_recipient")

    def _expire(self, record: records.Expire) -> None:
        event = self._revive(record.event)
        self._land(event)
        self._place(event, "expired")

    def _found(self, record: records.FindingRow) -> None:
        self.findings.append(record.t)

    def _finish(self, record: records.Finish) -> None:
        self.finished = record

    # --- the life of an event ---

    def _send(self, event: Event, to: Iterable[str]) -> None:
        """Put an event on its way to those who are there and do not hold it."""
        for name in to:
            agent = self._agents.get(name)
            if agent is not None and name not in event.copies:
                event.flight.setdefault(name, self.t)
                agent.incoming[event.id] = event

    def _land(self, event: Event) -> None:
        """Call an event back from where it is on its way to."""
        for name in event.flight:
            del self._agents[name].incoming[event.id]
        event.flight = {}

    def _place(self, event: Event, cause: str | None) -> None:
        """Settle where an event stands after a change: open, orphaned (and why), or closed."""
        self.touched.append(event)
        place = 0
        if event.work and not event.consumed:
            place = BUFFERED * bool(event.copies) + FLYING * bool(event.flight)
            if place:
                event.cause = None
                self._open[event.id] = event
            elif event.cause is None:
                event.cause = cause
                event.us_lost = self.now
        if place != event.place:
            self.problems.move(event, place)
        if not place:
            self._open.pop(event.id, None)
            if self._is_closed(event):
                self._live.pop(event.id, None)

    def _is_closed(self, event: Event) -> bool:
        is_undecided = event.final and not self.history.flags[event.n] & (ACCEPTED | BOUNCED)
        return not (event.copies or event.flight or event.cause or is_undecided)

    def _revive(self, name: str) -> Event:
        """The live object of an event, made anew if the event was closed."""
        event = self._live.get(name)
        if event is None:
            event = self._live[name] = self.event(name)
        return event


def implied_fate(event: Event) -> Fate:
    """The fate of an input that a decision does not name: read if it is a note, else kept."""
    return Fate(event.id, "consume" if event.by == SYSTEM else "delay")


_REWRITES = cast(
    "dict[type, Callable[[Rewrites, Record], None]]",
    {
        records.Run: Rewrites._begin,
        records.Emit: Rewrites._emit,
        records.Deliver: Rewrites._deliver,
        records.Start: Rewrites._start,
        records.End: Rewrites._end,
        records.Join: Rewrites._join,
        records.Leave: Rewrites._leave,
        records.Redirect: Rewrites._redirect,
        records.Expire: Rewrites._expire,
        records.FindingRow: Rewrites._found,
        records.Finish: Rewrites._finish,
    },
)
