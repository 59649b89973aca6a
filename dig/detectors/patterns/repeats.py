"""Parts shared by the patterns about repetition: doublings, and a bounded memory of events."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from dig._util.text import counted
from dig.graph.graph import InteractionGraph

GRAVE = 4
"""A repetition is an error from so many times its limit on."""

MOST_NEW = 1000
"""The number of latest events that an `EventMemory` remembers at least."""

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
    """A detector's memory of events: of all live ones, and of the closed ones that are new.

    A closed event (consumed, and with no agent any more) can only come back if a host sends it
    once more. At least the latest 1,000 events are remembered. When as many new ones have come as
    there are old ones, the old ones that are closed are dropped: so memory stays bounded.
    """

    def __init__(self) -> None:
        """Begin with no event."""
        self._new: dict[str, _Value] = {}
        self._old: dict[str, _Value] = {}
        self._most = MOST_NEW

    def put(self, graph: InteractionGraph, event: str, value: _Value) -> None:
        """Remember something of an event that is live, or comes to be with the next records."""
        self._new[event] = value
        if len(self._new) > self._most:
            events, to_come = self._old.keys(), {*graph.awaited}
            kept = {name: self._old[name] for name in events & graph.live.keys() | events & to_come}
            self._old, self._new = kept | self._new, {}
            self._most = max(MOST_NEW, len(kept))

    def get(self, event: str) -> _Value | None:
        """The memory of an event; ``None`` for one that was forgotten."""
        value = self._new.get(event)
        return self._old.get(event) if value is None else value

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the events that the graph knows no more."""
        known = {**self._old, **self._new}.items()
        self._old, self._new = {name: one for name, one in known if graph.knows(name)}, {}
