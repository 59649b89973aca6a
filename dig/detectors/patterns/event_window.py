"""Event windows: how long a condition has held for an event without a break.

The clock of patterns about single events (OE, LATE). An interval begins when the condition holds
after a record, and comes due once, after the window; a record after which it does not hold ends it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector
from dig.graph.graph import InteractionGraph
from dig.graph.records import Limits, Record, micros
from dig.graph.state import EventState, by_number


class EventWindowDetector(Detector):
    """A pattern that is raised when a condition has held for an event for a whole window."""

    def __init__(self) -> None:
        """Begin with no interval under way."""
        self._due: dict[str, int] = {}  # event -> when it is raised; gone once it was
        # The window is the same for all, so the interval that began first comes due first. An
        # entry whose time is not that of `_due` is of an interval that was broken.
        self._queue: deque[tuple[int, EventState]] = deque()
        self._raised: set[str] = set()
        self._window: int | None = None

    @abstractmethod
    def _window_s(self, limits: Limits) -> float | None:
        """The seconds for which the condition has to hold; ``None``: the pattern is off."""

    @abstractmethod
    def _holds(self, event: EventState) -> bool:
        """Whether the condition holds for an event."""

    @abstractmethod
    def _evidence(self, event: EventState) -> dict[str, Any]:
        """The evidence of the finding, at the moment of raising."""

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Begin and break intervals; nothing is raised by a record."""
        if self._window is None:
            window_s = self._window_s(graph.run.limits)
            if window_s is None:
                return ()
            self._window = micros(window_s)
        for event in graph.touched:
            if not self._holds(event):
                if self._due.pop(event.id, None) is None:
                    self._raised.discard(event.id)
            elif event.id not in self._due and event.id not in self._raised:
                due = record.us + self._window
                self._due[event.id] = due
                self._queue.append((due, event))
        if self._queue:
            self.due = self._next()
        return ()

    def _next(self) -> int | None:
        """When the next interval has lasted for the whole window."""
        while self._queue:
            due, event = self._queue[0]
            if self._due.get(event.id) == due:
                return due
            self._queue.popleft()
        return None

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise the pattern for the events whose window has passed at `us`."""
        ready: list[EventState] = []
        while self._next() == us:
            event = self._queue.popleft()[1]
            del self._due[event.id]
            self._raised.add(event.id)
            ready.append(event)
        self.due = self._next()
        for event in sorted(ready, key=by_number):
            subject, evidence = {"event": event.id}, self._evidence(event)
            yield Finding(self.pattern, graph.t, us, subject, evidence, severity="error")

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the events that the graph knows no more, and the intervals that were broken."""
        self._queue = deque(one for one in self._queue if self._due.get(one[1].id) == one[0])
        self._raised = {event for event in self._raised if graph.knows(event)}
