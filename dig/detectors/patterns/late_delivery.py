"""LATE, late delivery: work has been on its way to its recipient for too long.

Not in the paper: a message that a network keeps is neither lost nor waiting in a buffer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from dig._util.text import name, names
from dig.detectors.finding import Explanation, Finding
from dig.detectors.interventions import Intervention, Reroute
from dig.detectors.notes import described
from dig.detectors.paths import PathFinder
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import CHANGING, DISTURBANCE, WAITS, Emit, IncidentRow, Record, micros
from dig.graph.state import FLYING, EventState, by_number


class LateDelivery(Detector):
    """Raises LATE for an event that has been on its way for `late_window_s` without a break."""

    pattern = "LATE"
    recorded_as = "dig.detectors.patterns.late_delivery.LateDelivery"
    kinds = (*CHANGING, IncidentRow)

    def __init__(self) -> None:
        """Begin with no event on its way."""
        self._due: dict[str, int] = {}  # event -> when it is raised; gone once it was
        # The window is the same for all, so what left first comes due first. An entry whose time
        # is not that of `_due` is of an interval that was broken.
        self._queue: deque[tuple[int, EventState]] = deque()
        self._raised: set[str] = set()
        self._kept: set[str] = set()  # unconsumed work that is kept on purpose

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Begin and break intervals; nothing is raised by a record."""
        window_s = graph.run.limits.late_window_s
        if window_s is None:
            return ()
        self._note_purpose(graph, record)
        for event in graph.touched:
            if event.place != FLYING:
                self._due.pop(event.id, None)
                self._raised.discard(event.id)
                if event.consumed:
                    self._kept.discard(event.id)
            elif not (event.id in self._due or event.id in self._raised or event.id in self._kept):
                due = record.us + micros(window_s)
                self._due[event.id] = due
                self._queue.append((due, event))
        self.due = self._next()
        return ()

    def _note_purpose(self, graph: InteractionGraph, record: Record) -> None:
        """Take note of an event that a policy, or the host, keeps on purpose."""
        if isinstance(record, Emit) and record.policy not in (None, DISTURBANCE):
            event: Any = record.event
        elif isinstance(record, IncidentRow) and record.what == WAITS:
            event = record.detail.get("event") if isinstance(record.detail, dict) else None
        else:
            return
        if isinstance(event, str) and graph.knows(event) and not graph.event(event).consumed:
            self._kept.add(event)
            self._due.pop(event, None)

    def _next(self) -> int | None:
        """When the next event has been on its way for the whole window."""
        while self._queue:
            due, event = self._queue[0]
            if self._due.get(event.id) == due:
                return due
            self._queue.popleft()
        return None

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise LATE for the events that have been on their way long enough at `us`."""
        ready: list[EventState] = []
        while self._next() == us:
            event = self._queue.popleft()[1]
            del self._due[event.id]
            self._raised.add(event.id)
            ready.append(event)
        self.due = self._next()
        for event in sorted(ready, key=by_number):
            subject, evidence = {"event": event.id}, {"to": sorted(event.flight)}
            yield Finding(self.pattern, graph.t, us, subject, evidence, severity="error")

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the events that the graph knows no more, and the intervals that were broken."""
        self._queue = deque(one for one in self._queue if self._due.get(one[1].id) == one[0])
        self._raised = {event for event in self._raised if graph.knows(event)}
        self._kept = {event for event in self._kept if graph.knows(event)}


def describe(subject: Any, evidence: Any) -> str:
    """LATE in words."""
    return f"{name(subject['event'])} has been on its way to {names(evidence['to'])} for too long"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """The way to the event."""
    text = f"{describe(finding.subject, finding.evidence)}."
    return Explanation(text, (PathFinder(graph, finding).to_last_seen(finding.subject["event"]),))


class HealLateDelivery(Healer):
    """Sends the event on its way again."""

    recorded_as = "dig.detectors.patterns.late_delivery.HealLateDelivery"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Redirect the event to the recipients that it has not reached."""
        event = graph.event(finding.subject["event"])
        if event.place == FLYING:
            note = f"Event {described(graph, [event.id])} came late, and was sent once more."
            yield Reroute(event.id, note, tuple(sorted(event.flight)))
