"""The watch: a graph with detectors around it, fed record by record.

Live and after the fact it is the same object, so what is found in a run is what is found again
in its trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dig._util.json_values import plain
from dig.graph.graph import InteractionGraph
from dig.graph.records import ASIDE, Finish, Record

from .finding import Finding
from .protocols import ClockDetector, Detector, nothing

MOST_FAULTS = 3

_UNSEEN = {*ASIDE, Finish}

Fault = Callable[[str, str], None]
"""Told of a detector's failure: which detector, and what happened."""


class _Part:
    """A detector at work."""

    __slots__ = ("awaited", "clock", "detect", "due", "faults", "kinds", "let_go", "name")

    def __init__(self, detector: Detector) -> None:
        self.detect = detector.detect
        self.clock = detector if isinstance(detector, ClockDetector) else None
        self.awaited: Callable[[], Iterable[str]] = getattr(detector, "awaited", tuple)
        self.let_go: Callable[[InteractionGraph], object] = getattr(detector, "let_go", nothing)
        self.kinds: tuple[type, ...] | None = getattr(detector, "kinds", None)
        self.name = str(getattr(detector, "pattern", type(detector).__name__))
        self.due: int | None = None
        self.faults = 0


class Watch:
    """A graph, and the detectors that look at it after every record.

    A detector that raises, returns what is no finding, or takes too long has failed. After three
    failures (one, if it was late or its clock stands still) it is disabled; the others go on.

    Attributes:
        graph: The graph.
        seconds: How long each detector has looked, by pattern, if there is a stopwatch.
    """

    def __init__(
        self,
        detectors: Sequence[Detector],
        *,
        on_fault: Fault = lambda name, what: None,
        stopwatch: Callable[[], float] | None = None,
        limit_s: float = 5.0,
    ) -> None:
        """Set up a watch.

        Args:
            detectors: In the order in which simultaneous findings are listed.
            on_fault: Told of each failure of a detector.
            stopwatch: A clock in seconds that times detectors; ``None``: they are not timed.
            limit_s: A detector that takes longer for one look is disabled after it returns.
        """
        self.graph = InteractionGraph()
        self._parts = [_Part(detector) for detector in detectors]
        self._clocks = [part for part in self._parts if part.clock is not None]
        self._interested: dict[type, list[_Part]] = {}  # by kind of record, on demand
        self._due: int | None = None  # the earliest of all clocks
        self._on_fault = on_fault
        self._stopwatch = stopwatch
        self._limit_s = limit_s
        self.seconds: dict[str, float] = {}

    def feed(self, record: Record) -> list[Finding]:
        """Apply a record; return what was due before it and what it raises, in order.

        Raises:
            RuleError: The record contradicts those before it.
        """
        return self.apply(record) + self.look(record)

    def apply(self, record: Record) -> list[Finding]:
        """Apply a record; return what was due before it.

        Raises:
            RuleError: The record contradicts those before it.
        """
        found = self.advance(record.us)
        self.graph.apply(record)
        return found

    def look(self, record: Record) -> list[Finding]:
        """What the record that was just applied raises."""
        found: list[Finding] = []
        # ASIDE changes no graph, and nothing may be raised by a raised finding; after the last
        # record nothing can be written down any more.
        kind = type(record)
        if kind in _UNSEEN:
            return found
        parts = self._interested.get(kind)
        if parts is None:
            parts = [part for part in self._parts if part.kinds is None or kind in part.kinds]
            self._interested[kind] = parts
        for part in parts:
            self._ask(part, part.detect, record, found)
            if part.clock is not None:
                part.due = self._deadline_of(part, part.clock)
        self._due = self._next_due()
        return found

    def advance(self, us: int) -> list[Finding]:
        """What clocks raise up to the moment `us` (included), in order."""
        found: list[Finding] = []
        while self._due is not None and self._due <= us:
            due = self._due
            for part in self._clocks:
                if part.due == due and part.clock is not None:
                    self._ask(part, part.clock.expire, due, found)
                    part.due = self._deadline_of(part, part.clock)
                    if part.due is not None and part.due <= due:
                        self._fail(part, "its deadline does not move on", at_once=True)
            self._due = self._next_due()
        return found

    def awaited(self) -> set[str]:
        """The events of which a detector will say something when time has passed."""
        events = set[str]()
        for part in self._parts:
            try:
                events.update(part.awaited())
            except Exception as error:  # a detector must never be able to stop a team
                self._fail(part, f"raised {error!r}")
        return events

    def let_go(self) -> None:
        """The graph has let go of history: detectors forget what they know about that."""
        for part in self._parts:
            try:
                part.let_go(self.graph)
            except Exception as error:  # a detector must never be able to stop a team
                self._fail(part, f"raised {error!r}")

    def deadline(self) -> int | None:
        """The next moment at which something is raised if nothing comes before."""
        return self._due

    def _next_due(self) -> int | None:
        if self.graph.is_over:
            return None
        earliest: int | None = None
        for part in self._clocks:
            due = part.due
            if due is not None and (earliest is None or due < earliest):
                earliest = due
        return earliest

    def _deadline_of(self, part: _Part, clock: ClockDetector) -> int | None:
        try:
            due = clock.deadline(self.graph)
            if due is None or type(due) is int:
                return due if part in self._parts else None
            raise TypeError(f"{due!r} is no whole number of microseconds")
        except Exception as error:
            self._fail(part, f"its deadline raised {error!r}", at_once=True)
            return None

    def _ask(
        self, part: _Part, look: Callable[..., Iterable[Finding]], at: Any, found: list[Finding]
    ) -> None:
        """Have a detector look, and add what it raises to `found`; all of it, or nothing."""
        start = self._stopwatch() if self._stopwatch else 0.0
        before = len(found)
        try:
            for finding in look(self.graph, at):
                _check(finding)
                found.append(finding)
        except Exception as error:  # a detector must never be able to stop a team
            del found[before:]
            self._fail(part, f"raised {error!r}")
            return
        if self._stopwatch:
            took = self._stopwatch() - start
            self.seconds[part.name] = self.seconds.get(part.name, 0.0) + took
            if took > self._limit_s:
                self._fail(part, f"took longer than {self._limit_s} s", at_once=True)

    def _fail(self, part: _Part, what: str, *, at_once: bool = False) -> None:
        part.faults += 1
        if (at_once or part.faults >= MOST_FAULTS) and part in self._parts:
            # New lists: this may be in the middle of a walk through the old ones.
            self._parts = [other for other in self._parts if other is not part]
            self._clocks = [other for other in self._clocks if other is not part]
            self._interested = {}
            part.due = None
            what += "; it is disabled for the rest of the run"
        self._on_fault(part.name, what)


def _check(finding: Finding) -> None:
    if not isinstance(finding, Finding):
        raise TypeError(f"{finding!r} is not a Finding")
    if not isinstance(finding.pattern, str):
        raise TypeError(f"the pattern {finding.pattern!r} is no name")
    if not (finding.stage is None or isinstance(finding.stage, str)):
        raise TypeError(f"the stage {finding.stage!r} is no name")
    if type(finding.t) is not int or type(finding.us) is not int:
        raise TypeError(f"{finding!r} has no whole numbers for its times")
    plain(finding.subject)
    plain(finding.evidence)
