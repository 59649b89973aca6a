"""The notes that a simulated agent heeds.

A note works by its content: its pattern, and the events and work that it names. A bare wake-up
has no content, so an agent that is woken only looks again at what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from dig.detectors.judged import PREFIX
from dig.monitor.messages import About, Pending
from dig.runtime.agents import View

Heeds = Callable[[str], bool]
"""Whether an agent heeds a note, from a text that tells the note from others."""


class Heeded:
    """The notes in front of an agent that it heeds, by pattern."""

    def __init__(self, view: View, heeds: Heeds) -> None:
        """Choose among the notes in a view."""
        self._view = view
        self._notes: dict[str, list[tuple[Pending, About]]] = {}
        for event in view.events:
            for about in event.about:
                pattern = about.pattern.removeprefix(PREFIX)
                if heeds(f"heed {pattern} {event.id}"):
                    self._notes.setdefault(pattern, []).append((event, about))

    def on(self, pattern: str) -> Iterator[tuple[Pending, About]]:
        """The notes about findings of a pattern, each with the event that it stands beside."""
        yield from self._notes.get(pattern, ())

    def warns(self, pattern: str, events: Collection[str]) -> bool:
        """Whether a note about a finding of a pattern stands beside one of some events, or names
        one of them."""
        return any(
            beside.id in events or not set(about.events).isdisjoint(events)
            for beside, about in self.on(pattern)
        )

    def is_beside(self, pattern: str, event: str) -> bool:
        """Whether a note about a finding of a pattern stands beside an event."""
        return any(beside.id == event for beside, _ in self.on(pattern))

    def naming_mine(self, pattern: str) -> Iterator[About]:
        """The notes that name work in front of the agent itself."""
        mine = {event.id for event in self._view.events}
        for beside, about in self.on(pattern):
            if mine.intersection(about.events) - {beside.id}:
                yield about

    def lost_work(self) -> Iterator[object]:
        """The payloads of lost work that notes of their own ask this agent to do again.

        An agent that a note names is meant; if none of those is there, the first of the team.
        """
        for beside, about in self.on("OE"):
            named = [agent for agent in about.agents if agent in self._view.team]
            is_meant = self._view.agent in (named or self._view.team[:1])
            if beside.id not in about.events and is_meant:
                yield from (about.work[event] for event in about.lost)
