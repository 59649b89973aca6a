"""What the patterns about repetition share: doublings, and a bounded memory of events."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from dig._util.text import counted
from dig.graph.graph import InteractionGraph

GRAVE = 4
"""A repetition is an error from so many times its limit on."""

MOST_CLOSED = 1000
"""How many closed events an `EventMemory` remembers."""

_Value = TypeVar("_Value")


def is_doubling(n: int, least: int) -> bool:
    """Whether a count is `least`, or that doubled once, twice, ...: when a repetition is raised."""
    if n < least:
        return False
    times, rest = divmod(n, least)
    return rest == 0 and times & (times - 1) == 0


def more_than(n: int, noun: str, evidence: Any) -> str:
    """A number of things, for a list that evidence may have cut: `more than 100 times`."""
    return f"more than {counted(n, noun)}" if evidence.get("more") else counted(n, noun)


class EventMemory(Generic[_Value]):
    """What a detector remembers of events: of all live ones, and of the closed ones that are new.

    A closed event (consumed, and with no agent any more) can only come back if a host sends it
    once more. Of closed events the latest 1,000 are remembered, so that memory stays bounded.
    """

    def __init__(self) -> None:
        """Begin with no event."""
        self._values: dict[str, _Value] = {}
        self._closed: dict[str, None] = {}  # in the order in which they were closed

    def put(self, event: str, value: _Value) -> None:
        """Remember something of an event."""
        self._values[event] = value

    def get(self, event: str) -> _Value | None:
        """What is remembered of an event; ``None`` for one that was forgotten."""
        return self._values.get(event)

    def update(self, graph: InteractionGraph) -> None:
        """Take note of the events that the latest record closed or brought back."""
        live, values, closed = graph.live, self._values, self._closed
        for event in graph.touched:
            if event.id in live:
                closed.pop(event.id, None)
            elif event.id in values:
                closed[event.id] = None
        while len(closed) > MOST_CLOSED:
            oldest = next(iter(closed))
            del closed[oldest], values[oldest]

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the events that the graph knows no more."""
        for event in [event for event in self._values if not graph.knows(event)]:
            del self._values[event]
            self._closed.pop(event, None)
