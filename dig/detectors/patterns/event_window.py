"""Event windows: how long a condition has held for an event without a break.

The clock of patterns about single events (OE, LATE). An interval begins when the condition holds
after a record, and comes due once, after the window; a record after which it does not hold ends it.
The event itself knows since when it is as it is, so only the beginnings are looked at.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record, micros
from dig.graph.state import EventState, by_number

MANY = 64
"""The number of records that may have begun intervals, when their events are looked at."""


class EventWindowDetector(Detector):
    """Raises a pattern after a condition has held for an event for a whole window.

    Attributes:
        window: The threshold with the seconds for which the condition has to hold; if that is
            ``None`` the pattern is off.
    """

    window: ClassVar[str]

    def __init__(self) -> None:
        """Begin with no interval under way."""
        # The moments and events of records that may have begun intervals. Most of these are broken
        # within the same request, so the events are looked at when somebody asks, or many are here.
        self._begun: list[tuple[int, list[EventState]]] = []
        # By event, when its interval comes due, and since when the condition holds. The window is
        # the same for all, so the interval that began first comes due first.
        self._queue: OrderedDict[str, tuple[int, int, EventState]] = OrderedDict()
        self._raised: dict[str, int] = {}  # by event, since when what was raised has held
        self._window: int | None = None

    @abstractmethod
    def _since(self, event: EventState) -> int | None:
        """The moment since which the condition holds; ``None``: it does not hold."""

    @abstractmethod
    def _evidence(self, event: EventState) -> dict[str, Any]:
        """The evidence of the finding, at the moment of raising."""

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Begin intervals; nothing is raised by a record."""
        if self._window is None:
            window_s = getattr(graph.run.limits, self.window)
            if window_s is None:
                return ()
            self._window = micros(window_s)
        self._begun.append((record.us, graph.touched))
        self.due = self.due or record.us + self._window  # too early, if that one is broken
        if len(self._begun) == MANY:
            self.settle_due()
        return ()

    def _begin(self) -> None:
        """Begin the intervals of the latest records that go on."""
        begun, self._begun = self._begun, []
        for us, event in ((us, event) for us, touched in begun for event in touched):
            since, before = self._since(event), self._queue.get(event.id)
            if since is None or since > us:  # broken; a later record has begun another one
                continue
            if self._raised.get(event.id) != since and (before is None or before[1] != since):
                self._queue[event.id] = us + (self._window or 0), since, event
                self._queue.move_to_end(event.id)

    def settle_due(self) -> None:
        """Set `due` to the end of the first unbroken interval."""
        self._begin()
        self.due = None
        while self._queue:
            name = next(iter(self._queue))
            due, since, event = self._queue[name]
            if self._since(event) == since:
                self.due = due
                break
            del self._queue[name]

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise the pattern for the events at the end of their window."""
        ready: list[EventState] = []
        self.settle_due()
        while self.due == us:
            name, (_, since, event) = self._queue.popitem(last=False)
            self._raised[name] = since
            ready.append(event)
            self.settle_due()
        # By number, so live run and check raise simultaneous findings in the same order.
        for event in sorted(ready, key=by_number):
            subject, evidence = {"event": event.id}, self._evidence(event)
            yield Finding(self.pattern, graph.t, us, subject, evidence, severity="error")

    def awaited(self) -> Iterable[str]:
        """The events with an interval under way."""
        self._begin()
        queue = self._queue.values()
        return [event.id for _, since, event in queue if self._since(event) == since]

    def forget(self, graph: InteractionGraph) -> None:
        """Forget broken intervals, and events unknown to the graph."""
        awaited = self.awaited()
        self._queue = OrderedDict((name, self._queue[name]) for name in awaited)
        self._raised = {name: us for name, us in self._raised.items() if graph.knows(name)}
