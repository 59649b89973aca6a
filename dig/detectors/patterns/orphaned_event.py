"""OE, orphaned event: work that nobody has consumed, and nobody can reach any more.

Paper, section 5 (3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from dig._util.text import name
from dig.detectors.explain import Story
from dig.detectors.finding import Explanation, Finding
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, End, Expire, Leave, Record, Redirect, micros
from dig.graph.state import Event, by_number


class OrphanedEvent:
    """Raises OE for an event that has been orphaned for `oe_window_s` without a break."""

    pattern = "OE"
    kinds = (Emit, End, Leave, Redirect, Expire)

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
            evidence = {"cause": event.cause}
            yield Finding("OE", graph.t, us, {"event": event.id}, evidence, why=explain)

    def awaited(self) -> Iterable[str]:
        """The orphans that are not raised yet: a session does not let go of them before."""
        return self._due

    def let_go(self, graph: InteractionGraph) -> None:
        """Forget the orphans that nobody can find any more, and intervals that were broken."""
        self._queue = deque(one for one in self._queue if self._due.get(one[1].id) == one[0])
        self._raised = {event for event in self._raised if graph.knows(event)}


LOST = {
    "no_recipient": "it was sent to nobody who was there",
    "discarded": "it was discarded",
    "left": "the agent that had it has left",
    "expired": "its time has run out",
}


def tell(subject: Any, evidence: Any) -> str:
    """OE in words."""
    why = LOST.get(evidence["cause"]) or name(evidence["cause"])
    return f"nobody consumed {name(subject['event'])}, and nobody can any more: {why}"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """What became of the event, and the way to it."""
    story, event = Story(graph, finding), finding.subject["event"]
    text = f"{tell(finding.subject, finding.evidence)}. {story.last_seen_of([event])}"
    return Explanation(text, (story.to_last_seen(event),))
