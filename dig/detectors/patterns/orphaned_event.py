"""OE, orphaned event: work that no agent has consumed, and that none can reach any more.

Paper, section 5 (3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dig._util.text import name
from dig.detectors.finding import Explanation, Finding
from dig.detectors.interventions import Create, Intervention, Reroute
from dig.detectors.notes import absent, described
from dig.detectors.paths import PathFinder
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, End, Expire, Leave, Record, Redirect, micros
from dig.graph.state import EventState, by_number

LOST = {
    "no_recipient": "it was sent to nobody who was there",
    "discarded": "it was discarded",
    "left": "the agent that had it has left",
    "expired": "its time has run out",
}
"""By cause: how an event was lost."""


class OrphanedEvent(Detector):
    """Raises OE for an event that has been orphaned for `oe_window_s` without a break."""

    pattern = "OE"
    recorded_as = "dig.detectors.orphaned_event.OrphanedEvent"
    kinds = (Emit, End, Leave, Redirect, Expire)

    def __init__(self) -> None:
        """Begin with no orphan."""
        self._due: dict[str, int] = {}  # orphan -> when it is raised; gone once it was
        # The window is the same for all, so that what is orphaned first comes due first. An
        # entry whose time is not that of `_due` is of an interval that was broken.
        self._queue: deque[tuple[int, EventState]] = deque()
        self._raised: set[str] = set()

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Begin and break intervals; nothing is raised by a record."""
        for event in graph.touched:
            if event.cause is None:
                self._due.pop(event.id, None)
                self._raised.discard(event.id)
            elif event.id not in self._due and event.id not in self._raised:
                due = record.us + micros(graph.run.limits.oe_window_s)
                self._due[event.id] = due
                self._queue.append((due, event))
        self.due = self._next()
        return ()

    def _next(self) -> int | None:
        """When the next orphan has been one for the whole window."""
        while self._queue:
            due, event = self._queue[0]
            if self._due.get(event.id) == due:
                return due
            self._queue.popleft()
        return None

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise OE for the events that have been orphaned long enough at `us`."""
        ready: list[EventState] = []
        while self._next() == us:
            event = self._queue.popleft()[1]
            del self._due[event.id]
            self._raised.add(event.id)
            ready.append(event)
        self.due = self._next()
        for event in sorted(ready, key=by_number):
            subject, evidence = {"event": event.id}, {"cause": event.cause}
            yield Finding(self.pattern, graph.t, us, subject, evidence, severity="error")

    def awaited(self) -> Iterable[str]:
        """The orphans that are not raised yet."""
        return self._due

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the orphans that the graph knows no more, and the intervals that were broken."""
        self._queue = deque(one for one in self._queue if self._due.get(one[1].id) == one[0])
        self._raised = {event for event in self._raised if graph.knows(event)}


def describe(subject: Any, evidence: Any) -> str:
    """OE in words."""
    why = LOST.get(evidence["cause"]) or name(evidence["cause"])
    return f"nobody consumed {name(subject['event'])}, and nobody can any more: {why}"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """What became of the event, and the way to it."""
    paths, event = PathFinder(graph, finding), finding.subject["event"]
    text = f"{describe(finding.subject, finding.evidence)}. {paths.last_seen_of([event])}"
    return Explanation(text, (paths.to_last_seen(event),))


class HealOrphanedEvent(Healer):
    """Sends lost work back to the agent that generated it, or tells all agents."""

    recorded_as = "dig.detectors.healing.HealOrphanedEvent"

    def __init__(self) -> None:
        """Begin with no event sent back."""
        self._returned: set[str] = set()  # discarded events: these go back once

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the events that the graph knows no more."""
        self._returned = {event for event in self._returned if graph.knows(event)}

    def missing_work(self, finding: Finding) -> Sequence[str]:
        """The lost event."""
        return (finding.subject["event"],)

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the status and redirect; or create a system event."""
        event = graph.event(finding.subject["event"])
        if event.cause is None:
            return  # an agent has it again
        generator = graph.history.sender(event.n)
        note = (
            f"Nobody has consumed event {described(graph, [event.id])}, "
            f"and nobody can any more: {LOST.get(event.cause, event.cause)}. "
        )
        if event.cause == "no_recipient":
            note += absent(graph, event.id)
        if generator not in graph.agents or generator is None:
            yield Create(note + "If it matters, do its part again.", tuple(graph.agents))
        elif event.cause != "discarded":
            yield Reroute(event.id, note + "Send it to somebody who is there.", (generator,))
        elif generator in event.discarded_by or event.id in self._returned:
            yield Create(note + "If it matters, do its part again.", (generator,))
        else:
            self._returned.add(event.id)
            yield Reroute(event.id, note + "See to it, if it matters.", (generator,))
