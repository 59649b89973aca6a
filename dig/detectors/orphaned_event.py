"""OE, orphaned event: work that nobody has consumed, and nobody can reach any more.

Paper, section 5 (3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.records import Record, micros
from dig.state import Event, by_number


class OrphanedEvent:
    """Raises OE for an event that has been orphaned for `oe_window_s` without a break."""

    pattern = "OE"

    def __init__(self) -> None:
        """Begin with no orphan."""
        self._due: dict[str, int] = {}  # orphan -> when it is raised; gone once it was
        # The window is the same for all, so that what is orphaned first comes due first. An
        # entry whose time is not that of `_due` is of an interval that was broken.
        self._queue: deque[tuple[int, Event]] = deque()
        self._raised: set[str] = set()

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Begin and break intervals; nothing is raised by a record."""
        for event in graph.touched:
            if event.cause is None:
                self._due.pop(event.id, None)
                self._raised.discard(event.id)
            elif event.id not in self._due and event.id not in self._raised:
                due = record.us + micros(graph.run.limits.oe_window_s)
                self._due[event.id] = due
                self._queue.append((due, event))
        return iter(())

    def deadline(self, graph: InteractionGraph) -> int | None:
        """When the next orphan has been one for the whole window."""
        while self._queue:
            due, event = self._queue[0]
            if self._due.get(event.id) == due:
                return due
            self._queue.popleft()
        return None

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise OE for the events that have been orphaned long enough at `us`."""
        ready: list[Event] = []
        while self.deadline(graph) == us:
            event = self._queue.popleft()[1]
            del self._due[event.id]
            self._raised.add(event.id)
            ready.append(event)
        for event in sorted(ready, key=by_number):
            yield Finding("OE", graph.t, us, {"event": event.id}, {"cause": event.cause})
