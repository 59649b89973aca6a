"""The watch: a graph with detectors around it, fed record by record.

A live run and a stored trace use the same class, so the findings of a run are found again in its
trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from dig._util.json_values import plain
from dig.graph.graph import InteractionGraph
from dig.graph.records import CHANGING, FindingRow, Finish, HealRow, IncidentRow, Record

from .finding import SEVERITIES, Finding, bounded
from .protocols import Detector, check
from .usual import UsualCounts

MOST_FAULTS = 3

_UNSEEN = {FindingRow, HealRow, Finish}

Fault = Callable[[str, str], None]
"""Is called with the name of a detector that has failed, and what happened."""


class _Part:
    """A detector at work."""

    __slots__ = ("detector", "due", "faults", "name")

    def __init__(self, detector: Detector) -> None:
        check(detector, Detector)
        self.detector = detector
        self.name = str(detector.pattern or type(detector).__name__)
        self.due: int | None = None  # as the detector said after the latest look
        self.faults = 0


class Watch:
    """A graph, and the detectors that look at it after every record.

    A detector fails if it raises, returns anything but findings, or takes too long. After three
    failures (one, if it was late or its `due` stands still) it is disabled; the others go on.

    Attributes:
        graph: The graph.
        due: The next moment, in microseconds, at which something is raised if nothing comes before.
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
        self._interested: dict[type, list[_Part]] = {}  # by kind of record, on demand
        self.due: int | None = None
        self._on_fault = on_fault
        self._stopwatch = stopwatch
        self._limit_s = limit_s
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
        """What the record that was just applied raises."""
        found: list[Finding] = []
        # A finding must not raise another; after the last record nothing can be written down any
        # more. An incident changes no graph: only a detector that names this kind is shown it.
        kind = type(record)
        if kind in _UNSEEN or (self.graph.is_over and kind is IncidentRow):
            return found
        parts = self._interested.get(kind)
        if parts is None:
            parts = self._interested[kind] = [
                part
                for part in self._parts
                if kind in (CHANGING if part.detector.kinds is None else part.detector.kinds)
            ]
        for part in parts:
            self._ask(part, part.detector.detect, record, found)
        self._set_due()
        return found

    def advance(self, us: int) -> list[Finding]:
        """What comes due up to the moment `us` (included), in order."""
        found: list[Finding] = []
        while self.due is not None and self.due <= us:
            due = self.due
            expired = [part for part in self._parts if part.due == due]
            for part in expired:
                self._ask(part, part.detector.expire, due, found)
            self._set_due()
            for part in expired:
                if part.due is not None and part.due <= due:
                    self._fail(part, "its deadline does not move on", at_once=True)
                    self._set_due()
        return found

    def awaited(self) -> set[str]:
        """The events of which a detector will raise something when time has passed."""
        events = set[str]()
        for part in self._parts:
            try:
                events.update(part.detector.awaited())
            except Exception as error:  # a detector must never be able to stop a team
                self._fail(part, f"raised {error!r}")
        return events

    def forget(self) -> None:
        """Have detectors forget what they know about history that the graph has evicted."""
        for part in self._parts:
            try:
                part.detector.forget(self.graph)
            except Exception as error:  # a detector must never be able to stop a team
                self._fail(part, f"raised {error!r}")

    def _set_due(self) -> None:
        self.due = None
        if self.graph.is_over:
            return
        for part in self._parts:
            try:
                due = part.due = part.detector.due
                if due is None:
                    continue
                if type(due) is not int:
                    raise TypeError(f"{due!r} is no whole number of microseconds")
            except Exception as error:  # `due` may be a property
                self._fail(part, f"its deadline raised {error!r}", at_once=True)
                continue
            if self.due is None or due < self.due:
                self.due = due

    def _ask(
        self, part: _Part, look: Callable[..., Iterable[Finding]], at: Any, found: list[Finding]
    ) -> None:
        """Have a detector look, and add what it raises to `found`; all of it, or nothing."""
        start = self._stopwatch() if self._stopwatch else 0.0
        before = len(found)
        try:
            for finding in look(self.graph, at):
                _check(finding)
                evidence = bounded(finding.evidence)
                is_whole = evidence is finding.evidence
                found.append(finding if is_whole else replace(finding, evidence=evidence))
        except Exception as error:  # a detector must never be able to stop a team
            del found[before:]
            self._fail(part, f"raised {error!r}")
            return
        if self._stopwatch:
            took = self._stopwatch() - start
            self.seconds[part.name] = self.seconds.get(part.name, 0.0) + took
            if took > self._limit_s:
                self._fail(part, f"took longer than {self._limit_s} s", at_once=True)
        for i in range(before, len(found)):
            self._raised(part, found, i)

    def _raised(self, part: _Part, found: list[Finding], i: int) -> None:
        """Weigh a finding by what is usual for the team, and let the other detectors know of it."""
        finding = found[i]
        if self._usual.is_usual(self.graph, finding.pattern, finding.subject):
            finding = found[i] = replace(finding, severity="notice")
        for other in self._parts:
            if other is not part:
                try:
                    other.detector.on_finding(self.graph, finding)
                except Exception as error:  # a detector must never be able to stop a team
                    self._fail(other, f"raised {error!r}")

    def _fail(self, part: _Part, what: str, *, at_once: bool = False) -> None:
        part.faults += 1
        if (at_once or part.faults >= MOST_FAULTS) and part in self._parts:
            # New lists: this may be in the middle of a walk through the old ones.
            self._parts = [other for other in self._parts if other is not part]
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
    if finding.severity not in SEVERITIES:
        raise TypeError(f"the severity {finding.severity!r} is none of {', '.join(SEVERITIES)}")
    if type(finding.t) is not int or type(finding.us) is not int:
        raise TypeError(f"{finding!r} has no whole numbers for its times")
    plain(finding.subject)
    plain(finding.evidence)
