"""The watch: a graph with detectors around it, fed record by record.

A live run and a stored trace use the same class, so the findings of a run are found again in its
trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from dig._util.json_values import plain
from dig.errors import PART_ERRORS
from dig.graph.graph import InteractionGraph
from dig.graph.records import CHANGING, KINDS, IncidentRow, Record

from .finding import SEVERITIES, Finding, bounded
from .protocols import Detector, check
from .usual import UsualCounts

MOST_FAULTS = 3

_NOTHING = ()  # Python has one empty tuple

_Look = Callable[[InteractionGraph, Any], Iterable[Finding]]

Fault = Callable[[str, str], None]
"""Is called with the name of a detector that has failed, and what happened."""


class _Part:
    """A detector at work."""

    __slots__ = ("detect", "detector", "due", "expire", "faults", "name", "shown", "waits")

    def __init__(self, detector: Detector) -> None:
        check(detector, Detector)
        self.detector = detector
        self.detect: _Look = detector.detect
        self.expire: _Look = detector.expire
        self.name = str(detector.pattern or type(detector).__name__)
        kinds = CHANGING if detector.kinds is None else detector.kinds
        self.shown = 0  # what it is shown, as flags
        for kind in kinds:
            self.shown |= kind if isinstance(kind, int) else KINDS.get(kind, 0)
        self.waits = type(detector).expire is not Detector.expire  # else it is never due
        self.due: int | None = None  # as the detector said after the latest look
        self.faults = 0


class Watch:
    """A graph, and the detectors that look at it after every record.

    A detector fails if it raises, returns anything but findings, or takes too long. After three
    failures (one, if it was late or its `due` stands still) it is disabled; the others go on.

    Attributes:
        graph: The graph.
        not_before: Nothing is raised before this moment, in microseconds, if nothing comes before.
        seconds: The seconds that each detector has looked, by pattern, if there is a stopwatch.
    """

    def __init__(
        self,
        detectors: Sequence[Detector],
        *,
        on_fault: Fault = lambda name, what: None,
        stopwatch: Callable[[], float] | None = None,
        limit_s: float = 5.0,
    ) -> None:
        """Begin with an empty graph.

        Args:
            detectors: In the order in which simultaneous findings are listed.
            on_fault: Is called at each failure of a detector.
            stopwatch: A clock in seconds that times detectors; ``None``: they are not timed.
            limit_s: A detector that takes longer for one look is disabled after it returns.

        Raises:
            SettingsError: One of the detectors is none.
        """
        self.graph = InteractionGraph()
        self._parts = [_Part(detector) for detector in detectors]
        # Those that are shown a record, by what it has changed, and those of them with deadlines.
        self._shown: dict[int, tuple[list[_Part], list[_Part]]] = {}  # on demand
        self.not_before: int | None = None
        self._on_fault = on_fault
        self._stopwatch, self._limit_s = stopwatch, limit_s
        self._usual = UsualCounts()
        self.seconds: dict[str, float] = {}

    def feed(self, record: Record) -> list[Finding]:
        """Apply a record; return what was due before it and what it raises, in order.

        Raises:
            RuleError: The record contradicts those before it.
        """
        found = self.advance(record.us)
        self.graph.apply(record)
        return found + self.look(record)

    def look(self, record: Record) -> list[Finding]:
        """The findings that the record raises which was just applied."""
        # A finding must not raise another; after the last record nothing can be written down any
        # more. An incident changes no graph: only a detector that names this kind is shown it.
        changed = self.graph.changed
        shown = self._shown.get(changed)
        if shown is None:
            parts = [part for part in self._parts if part.shown & changed]
            shown = self._shown[changed] = parts, [part for part in parts if part.waits]
        if not shown[0] or (self.graph.is_over and type(record) is IncidentRow):
            return []
        return self._ask(*shown, record)

    def advance(self, us: int) -> list[Finding]:
        """The findings that come due up to the moment `us` (included), in order."""
        found: list[Finding] = []
        while self.not_before is not None and self.not_before <= us:
            due = self.due
            if due is None or due > us:
                break
            expired = [part for part in self._parts if part.due == due]
            found += self._ask(expired, expired, due, expires=True)
            for part in expired:
                if part.due is not None and part.due <= due:
                    self._fail(part, "its deadline does not move on", at_once=True)
                    self._set_due(self._parts)
        return found

    @property
    def due(self) -> int | None:
        """The moment, in microseconds, at which something is raised if nothing comes before."""
        if self.not_before is not None:
            self._tell_all(lambda detector: detector.settle_due())
            self._set_due(self._parts)
        return self.not_before

    def awaited(self) -> set[str]:
        """The events of which a detector will raise something when time has passed."""
        events = set[str]()
        self._tell_all(lambda detector: events.update(detector.awaited()))
        return events

    def forget(self) -> None:
        """Have detectors forget what they know about history that the graph has evicted."""
        self._tell_all(lambda detector: detector.forget(self.graph))

    def _tell_all(self, tell: Callable[[Detector], object], but: _Part | None = None) -> None:
        """Call a hook of all detectors, but for one; one that raises has failed."""
        for part in self._parts:
            try:
                if part is not but:
                    tell(part.detector)
            except PART_ERRORS as error:  # a detector must never be able to stop a team
                self._fail(part, f"raised {error!r}")

    def _ask(
        self, parts: list[_Part], waiting: list[_Part], at: Any, *, expires: bool = False
    ) -> list[Finding]:
        """Have detectors look at a record, or expire at a moment: all that they raise, in order.

        What a detector raises is taken as a whole, or not at all. `waiting` are those of them that
        may have deadlines.
        """
        found: list[Finding] = []
        graph, enabled, stopwatch = self.graph, self._parts, self._stopwatch
        began = stopwatch() if stopwatch else 0.0
        for part in parts:
            new: Sequence[Finding] = ()
            try:
                raised = part.expire(graph, at) if expires else part.detect(graph, at)
                if raised is not _NOTHING:  # which is seldom
                    new = [_checked(finding) for finding in raised]
            except PART_ERRORS as error:  # a detector must never be able to stop a team
                self._fail(part, f"raised {error!r}")
            if stopwatch:
                began, start = stopwatch(), began
                took_s = began - start
                self.seconds[part.name] = self.seconds.get(part.name, 0.0) + took_s
                if took_s > self._limit_s:
                    self._fail(part, f"took longer than {self._limit_s} s", at_once=True)
            if new:
                found += [self._raised(part, finding) for finding in new]
                began = stopwatch() if stopwatch else 0.0
        is_as_before = not found and enabled is self._parts  # a finding may move all deadlines
        self._set_due(waiting if is_as_before else self._parts)
        return found

    def _set_due(self, parts: list[_Part]) -> None:
        """Take the deadlines of the detectors that were asked, or of all, which is exact."""
        if self.graph.is_over:
            self.not_before = None
            return
        if parts is self._parts:
            self.not_before = None
            for part in parts:
                part.due = None
        for part in parts:
            try:
                due = part.detector.due
                if due is part.due:
                    continue
                if due is not None and type(due) is not int:
                    raise TypeError(f"{due!r} is no whole number of microseconds")
            except PART_ERRORS as error:  # `due` may be a property
                self._fail(part, f"its deadline raised {error!r}", at_once=True)
                continue
            part.due = due
            if due is not None and (self.not_before is None or due < self.not_before):
                self.not_before = due

    def _raised(self, part: _Part, finding: Finding) -> Finding:
        """Weigh a finding by what is usual for the team, and let the other detectors know of it."""
        if self._usual.is_usual(self.graph, finding.pattern, finding.subject):
            finding = replace(finding, severity="notice")
        self._tell_all(lambda detector: detector.on_finding(self.graph, finding), but=part)
        return finding

    def _fail(self, part: _Part, what: str, *, at_once: bool = False) -> None:
        part.faults += 1
        if (at_once or part.faults >= MOST_FAULTS) and part in self._parts:
            # New lists: this may be in the middle of a walk through the old ones.
            self._parts = [other for other in self._parts if other is not part]
            self._shown = {}
            part.due = None
            what += "; it is disabled for the rest of the run"
        self._on_fault(part.name, what)


def _checked(finding: Finding) -> Finding:
    """A finding whose evidence is bounded, if it is put together right."""
    if not isinstance(finding, Finding):
        raise TypeError(f"{finding!r} is not a Finding")
    if not isinstance(finding.pattern, str):
        raise TypeError(f"the pattern {finding.pattern!r} is no name")
    if not (finding.stage is None or isinstance(finding.stage, str)):
        raise TypeError(f"the stage {finding.stage!r} is no name")
    if finding.severity not in SEVERITIES:
        raise TypeError(f"the severity {finding.severity!r} is none of {', '.join(SEVERITIES)}")
    if type(finding.t) is not int or type(finding.us) is not int:
        raise TypeError(f"{finding!r} has no whole numbers for its times")
    plain(finding.subject)
    plain(finding.evidence)
    evidence = bounded(finding.evidence)
    is_whole = evidence is finding.evidence
    return finding if is_whole else replace(finding, evidence=evidence)
