"""What the patterns about repetition share: doublings, and a bounded memory of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from dig._util.text import counted
from dig.graph.graph import InteractionGraph

GRAVE = 4
"""A repetition is an error from so many times its limit on."""

MOST_CLOSED = 1000
"""The number of closed events that an `EventMemory` remembers at least."""

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
    once more. Of closed events at least the latest 1,000 are remembered. The others are dropped
    when the memory has doubled, so that it stays bounded and an event costs the same always.
    """

    def __init__(self) -> None:
        """Begin with no event."""
        self._values: dict[str, _Value] = {}
        self._most = MOST_CLOSED

    def put(self, graph: InteractionGraph, event: str, value: _Value) -> None:
        """Remember something of an event, which is live."""
        values = self._values
        values[event] = value
        if len(values) > self._most:
            live = graph.live
            latest = {*[event for event in values if event not in live][-MOST_CLOSED:]}
            self._keep(lambda event: event in live or event in latest)
            self._most = 2 * len(self._values) + MOST_CLOSED

    def get(self, event: str) -> _Value | None:
        """What is remembered of an event; ``None`` for one that was forgotten."""
        return self._values.get(event)

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the events that the graph knows no more."""
        self._keep(graph.knows)

    def _keep(self, stays: Callable[[str], bool]) -> None:
        self._values = {event: value for event, value in self._values.items() if stays(event)}
