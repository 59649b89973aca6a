"""The places of events: ids, agents, buffers, and events in flight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .violations import refuse


class Ids:
    """Used ids; ids counting up from 1 behind a prefix take no room."""

    def __init__(self) -> None:
        self.count = 0
        self._next: dict[str, int] = {}
        self._other: set[str] = set()

    def __contains__(self, name: str) -> bool:
        prefix, number = _split(name)
        return number in range(1, self._next.get(prefix, 1)) or name in self._other

    def add(self, name: str) -> None:
        """Use an id."""
        self.count += 1
        prefix, number = _split(name)
        if number == self._next.get(prefix, 1):
            self._next[prefix] = number + 1
        else:
            self._other.add(name)


def _split(name: str) -> tuple[str, int]:
    prefix = name.rstrip("0123456789")
    digits = name[len(prefix) :]
    return prefix, int(digits) if 0 < len(digits) < 18 and digits[0] != "0" else -1


@dataclass(slots=True, eq=False)
class TrackedEvent:
    """An event and the places: `copies` in buffers, `flight` on the way."""

    id: str
    work: bool = False
    final: bool = False
    system: bool = False
    copies: dict[str, None] = field(default_factory=dict)
    flight: dict[str, None] = field(default_factory=dict)
    consumed: bool = False
    cause: str | None = None


@dataclass(slots=True, eq=False)
class TrackedAgent:
    """A present agent, the events in the buffer and events on the way."""

    buffer: dict[str, TrackedEvent] = field(default_factory=dict)
    incoming: dict[str, TrackedEvent] = field(default_factory=dict)
    lane: dict[str, None] = field(default_factory=dict)  # what is on its way to it in order
    activation: str | None = None


class Locations:
    """The events and agents of a run, and where each event is."""

    def __init__(self) -> None:
        self.events, self.activations = Ids(), Ids()
        self.agents: dict[str, TrackedAgent] = {}
        self.live: dict[str, TrackedEvent] = {}  # all but what is closed for good

    def use(self, name: str, ids: Ids) -> None:
        """Use an id for an event or an activation."""
        self.check_new(name)
        ids.add(name)

    def check_new(self, name: str) -> None:
        """Check for an unused id."""
        if type(name) is not str or name == "system":
            refuse(f"{name!r} can be nobody's id")
        if name in self.events or name in self.activations:
            refuse(f"the id {name!r} is used for a second thing")

    def event(self, name: str) -> TrackedEvent:
        """An emitted event."""
        event = self.live.get(name)
        if event is None:
            if name not in self.events:
                refuse(f"there is no event {name!r}")
            # It was closed; its part of the books is settled, and it may be sent on.
            event = self.live[name] = TrackedEvent(name)
        return event

    def agent(self, name: str) -> TrackedAgent:
        """A present agent."""
        if name not in self.agents:
            refuse(f"agent {name!r} is not present")
        return self.agents[name]

    def send(self, event: TrackedEvent, to: Iterable[str], ordered: bool) -> None:
        """Put an event on the way to present agents without the event.

        Args:
            event: The event.
            to: The names of the agents.
            ordered: Whether the event reaches each after what was sent to that agent before, in
                order.
        """
        for name in to:
            agent = self.agents.get(name)
            if agent is not None and name not in event.copies and name not in event.flight:
                event.flight[name] = None
                agent.incoming[event.id] = event
                if ordered:
                    agent.lane[event.id] = None

    def land(self, event: TrackedEvent) -> None:
        """Take an event in flight back from all agents."""
        for name in event.flight:
            del self.agents[name].incoming[event.id]
            self.agents[name].lane.pop(event.id, None)
        event.flight = {}

    def settle(self, event: TrackedEvent, cause: str) -> None:
        """Update the state of an event after a change."""
        if event.copies or event.flight:
            event.cause = None
        # The first cause counts: later ones find the event orphaned already.
        elif event.work and not event.consumed:
            event.cause = event.cause or cause
        # Closed for good; a million events would not fit into memory.
        elif not (event.final or event.system):
            self.live.pop(event.id, None)


def text(value: Any) -> str:
    """Check for a string."""
    if type(value) is not str:
        refuse(f"{value!r} is no text")
    return value


def optional_text(row: dict[str, Any], key: str) -> str | None:
    """The text of an optional key; empty texts are refused."""
    value = row.get(key)
    if value is not None and not text(value):
        refuse(f"`{key}` is empty")
    return None if value is None else str(value)


def flag(row: dict[str, Any], key: str) -> bool:
    """The value of an optional flag; null is as absent."""
    value = row.get(key)
    if value is not None and type(value) is not bool:
        refuse(f"`{key}` is not true or false")
    return value is True


def names(value: Any) -> list[str]:
    """Check for a list of names."""
    if type(value) is not list or not all(type(name) is str for name in value):
        refuse(f"{value!r} is no list of names")
    return value
