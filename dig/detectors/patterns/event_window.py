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
"""The number of intervals that have begun, when broken ones are looked for."""


class EventWindowDetector(Detector):
    """Raises a pattern after a condition has held for an event for a whole window.

    Attributes:
        window: The threshold with the seconds for which the condition has to hold; if that is
            ``None`` the pattern is off.
    """

    window: ClassVar[str]

    def __init__(self) -> None:
        """Begin with no interval under way."""
        # By event, when its interval comes due, and since when the condition holds. The window is
        # the same for all, so the interval that began first comes due first. One that was broken
        # stays until the first comes due, or many have begun.
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
        for event in graph.touched:
            since = self._since(event)
            if since is None:
                continue
            if event.id in self._queue:
                if self._queue[event.id][1] == since:
                    continue
                del self._queue[event.id]  # so that the new one comes last
            if self._raised.get(event.id) != since:
                due = record.us + self._window
                self._queue[event.id] = due, since, event
                self.due = self.due or due  # too early, if the first was broken
        if len(self._queue) % MANY == 0:
            self.settle_due()
        return ()

    def settle_due(self) -> None:
        """Set `due` to the end of the first unbroken interval."""
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
        queue = self._queue.values()
        return [event.id for _, since, event in queue if self._since(event) == since]

    def forget(self, graph: InteractionGraph) -> None:
        """Forget broken intervals, and events unknown to the graph."""
        awaited = self.awaited()
        self._queue = OrderedDict((name, self._queue[name]) for name in awaited)
        self._raised = {name: us for name, us in self._raised.items() if graph.knows(name)}
