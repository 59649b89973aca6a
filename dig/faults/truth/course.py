"""The course of a run: what became of each event and of each activation.

Read from the records alone; all that verification measures is a function of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dig.graph.graph import InteractionGraph
from dig.graph.records import (
    Deliver,
    Emit,
    End,
    FindingRow,
    Finish,
    Leave,
    Record,
    Start,
)

from .elements import Ranges, about


@dataclass(slots=True)
class Event:
    """What became of an event.

    Attributes:
        id: Its id; t: the record that generated it; us: that moment, in microseconds.
        by: The activation that generated it, if one did; sender: that one's agent.
        to: Whom it was for.
        type: Its type; final: whether it carries an answer.
        payload: What it carries.
        about: The elements of the task that it is about.
        work: Whether it is work.
        arrivals: Who was given it, at which record.
        consumed: The activations that consumed it.
        reroutes: The records by which it was passed on.
        lost_t: The first record after which nobody could reach it, if it ever was lost.
        is_lost: Whether nobody can reach it in the end, and nobody consumed it.
    """

    id: str
    t: int
    us: int
    by: str | None
    sender: str | None
    to: tuple[str, ...]
    type: str
    final: bool
    payload: Any
    about: Ranges
    work: bool
    arrivals: list[tuple[str, int]] = field(default_factory=list)
    consumed: list[str] = field(default_factory=list)
    reroutes: list[int] = field(default_factory=list)
    lost_t: int | None = None
    is_lost: bool = False

    @property
    def report_to(self) -> Any:
        """Who is to be told what comes of it."""
        return self.payload.get("report_to") if isinstance(self.payload, dict) else None


@dataclass(slots=True)
class Activation:
    """What became of an activation.

    Attributes:
        id: Its id; agent: whose it is.
        inputs: The events in front of it.
        t: The record that started it; us: that moment, in microseconds.
        end: The record that ended it, if it ended.
        fates: What it did with its inputs, as far as it says so.
    """

    id: str
    agent: str
    inputs: tuple[str, ...]
    t: int
    us: int
    end: End | None = None
    fates: dict[str, str] = field(default_factory=dict)

    def with_fate(self, fate: str) -> list[str]:
        """The inputs that it did this with."""
        return [event for event, its in self.fates.items() if its == fate]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The events that it generated."""
        return self.end.outputs if self.end else ()


class Course:
    """A run, looked back at.

    Attributes:
        records: Its records.
        events: What became of the events, by id, as generated.
        activations: What became of the activations, by id, as started.
        agents: Everybody who took part.
        leaves: The record by which an agent went for good.
        findings: What was raised.
        finish: How it ended, if it did.
        whole: The elements of the task.
        answer: The final event that was accepted, if one was.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        """Read a run's records."""
        self.records = tuple(records)
        self.events: dict[str, Event] = {}
        self.activations: dict[str, Activation] = {}
        self.agents: list[str] = []
        self.leaves: dict[str, int] = {}
        self.findings: list[FindingRow] = []
        self.finish: Finish | None = None
        self.answer: Event | None = None
        self._times = [record.us for record in self.records]
        self._ancestors: dict[str, frozenset[str]] = {}
        graph = InteractionGraph()
        for record in self.records:
            read = _READERS.get(type(record))
            if read is not None:
                read(self, record)
            graph.apply(record)
            for event in graph.touched:
                known = self.events[event.id]
                known.is_lost = event.cause is not None
                if known.is_lost and known.lost_t is None:
                    known.lost_t = record.t
        self.agents = list(graph.run.agents)
        posed = [event.about for event in self.events.values() if event.by is None and event.about]
        self.whole: Ranges = posed[0] if posed else ()

    @property
    def last(self) -> Record:
        """The last record."""
        return self.records[-1]

    def at(self, us: float) -> int:
        """The first record that is not before a moment; the last one, if there is none."""
        return min(bisect_left(self._times, us), len(self.records) - 1)

    def us(self, t: int) -> int:
        """The moment of a record, in microseconds."""
        return self._times[t]

    def consumption(self, event: Event) -> End | None:
        """The end of the first activation that consumed an event."""
        return self.activations[event.consumed[0]].end if event.consumed else None

    def ancestors(self, event: str) -> frozenset[str]:
        """The events with a causal path to an event, itself included."""
        known = self._ancestors.get(event)
        if known is None:
            by = self.events[event].by
            used = self.activations[by].with_fate("consume") if by in self.activations else ()
            known = frozenset({event}).union(*(self.ancestors(one) for one in used))
            self._ancestors[event] = known
        return known

    def lies_unread(self, event: Event) -> bool:
        """Whether nobody has consumed an event in the end, though somebody could have."""
        return not event.consumed and not event.is_lost

    def kept_for(self, agent: str) -> list[Event]:
        """The solutions that an agent was to put together, and has in front of it in the end."""
        return [
            event
            for event in self.events.values()
            if event.type == "solution"
            and event.work
            and self.lies_unread(event)
            and event.report_to == agent
            and any(to == agent for to, _ in event.arrivals)
        ]

    # --- reading ---

    def _emitted(self, record: Emit) -> None:
        by = self.activations.get(record.by or "")
        is_work = record.by != "system" and not record.final and record.type != "notice"
        self.events[record.event] = Event(
            record.event,
            record.t,
            record.us,
            record.by,
            by.agent if by else None,
            record.to,
            record.type,
            record.final,
            record.payload,
            about(record.type, record.payload),
            is_work,
        )

    def _delivered(self, record: Deliver) -> None:
        event = self.events[record.event]
        if record.to is None:
            self.answer = event
        else:
            event.arrivals.append((record.to, record.t))

    def _started(self, record: Start) -> None:
        self.activations[record.activation] = Activation(
            record.activation, record.agent, record.inputs, record.t, record.us
        )

    def _ended(self, record: End) -> None:
        activation = self.activations[record.activation]
        activation.end = record
        for fate in record.fates:
            activation.fates[fate.event] = fate.fate
            event = self.events[fate.event]
            if fate.fate == "consume":
                event.consumed.append(activation.id)
            elif fate.fate == "reroute":
                event.reroutes.append(record.t)

    def _left(self, record: Leave) -> None:
        self.leaves[record.agent] = record.t

    def _found(self, record: FindingRow) -> None:
        self.findings.append(record)

    def _finished(self, record: Finish) -> None:
        self.finish = record


_READERS: Mapping[type, Callable[[Course, Any], None]] = {
    Emit: Course._emitted,
    Deliver: Course._delivered,
    Start: Course._started,
    End: Course._ended,
    Leave: Course._left,
    FindingRow: Course._found,
    Finish: Course._finished,
}
