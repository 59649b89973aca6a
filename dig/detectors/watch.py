"""The watch: a graph with detectors around it, fed record by record.

A live run and a stored trace use the same class, so the findings of a run are found again in its
trace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dig._util.json_values import plain
from dig.errors import PART_ERRORS
from dig.graph.graph import InteractionGraph
from dig.graph.records import (
    CHANGING,
    FAILED,
    KINDS,
    TRIED_AGAIN,
    UNANSWERED,
    IncidentRow,
    Record,
    micros,
)

from .finding import SEVERITIES, Finding, bound_evidence
from .protocols import Detector, check
from .usual import UsualCounts, key_of

MOST_FAULTS = 3

DISABLED = "it is disabled for the rest of the run"
"""The end of what is said of a detector that is disabled."""

OFF_S, MOST_DOUBLED = 60, 6
"""For how long a slow detector is off the first time; it is doubled so often at most."""

MOST_A_MINUTE = 1_000
"""The number of findings of a pattern that are raised in a minute of the run's clock."""

_MINUTE_US = 60_000_000

SLOW_S = 0.1
"""A look that takes so long counts as slow, and its processor time is looked at."""

_NOTHING = ()  # Python has one empty tuple

_Look = Callable[[InteractionGraph, Any], Iterable[Finding]]

Fault = Callable[..., None]
"""Is called with the name of a detector that has failed, what happened, and, if it was slow, with
what its incident has to say besides: the detector's `place`, and for how long it is off."""


@dataclass(frozen=True)
class Timing:
    """The clocks for timing and judging detectors, or the recorded judgements.

    Attributes:
        wall: Seconds, from any beginning, for the time that detectors take.
        processor: Seconds of processor time of the calling thread, by which they are judged, so
            that a process that was stopped meanwhile does not count; ``None``: by `wall`.
        recorded: What an incident of the recorded run says about a slow detector, if it has one of
            this logical time and moment.
    """

    wall: Callable[[], float] | None = None
    processor: Callable[[], float] | None = None
    recorded: Callable[[int, int], Mapping[str, Any] | None] | None = None


class _Part:
    """A detector at work."""

    __slots__ = (
        "detector", "due", "faults", "is_broken", "is_on", "late", "name", "shown", "waits",
    )  # fmt: skip

    def __init__(self, detector: Detector) -> None:
        check(detector, Detector)
        self.detector = detector
        self.name = str(detector.pattern or type(detector).__name__)
        kinds = CHANGING if detector.kinds is None else detector.kinds
        self.shown = 0  # what it is shown, as flags
        for kind in kinds:
            self.shown |= kind if isinstance(kind, int) else KINDS.get(kind, 0)
        self.waits = type(detector).expire is not Detector.expire  # else it is never due
        self.due: int | None = None  # as the detector said after the latest look
        self.faults = 0
        self.is_broken = False  # disabled for good
        self.is_on = True  # neither disabled nor off for a while
        self.late = 0  # how often it was slow


_Shown = tuple[list[tuple[_Part, _Look]], list[_Part]]
"""Detectors with their looks, and those of them that may have deadlines."""


class Watch:
    """A graph, and the detectors around it.

    A detector fails if it raises, returns anything but findings, or takes too long. After three
    failures (one, if its `due` stands still) it is disabled; the others go on. A detector that
    takes too long is off for a while. Incidents turn it off and on again, so a replay of the
    records does the same.

    Attributes:
        not_before: The moment, in microseconds, before which nothing is raised without a record.
        seconds: The seconds in each detector, by pattern, if there is a stopwatch.
        slow_s: The seconds of all slow looks (`SLOW_S`), and of slow writes of the recorder.
        off: By place: the end of a detector's time off, in microseconds, and its name in incidents.
        left_out: The number of findings of the latest minute beyond `MOST_A_MINUTE`, by pattern;
            the recorder writes an incident about them and empties it.
    """

    def __init__(
        self,
        detectors: Sequence[Detector],
        *,
        on_fault: Fault = lambda name, failure: None,
        stopwatch: Timing | Callable[[], float] | None = None,
        limit_s: float = 5.0,
        obeys: bool = False,
    ) -> None:
        """Begin with an empty graph.

        Args:
            detectors: The detectors, in the order of simultaneous findings.
            on_fault: Called at each failure of a detector.
            stopwatch: The clocks that time detectors; ``None``: detectors are not timed.
            limit_s: The longest look of a detector, in seconds, before it is off for a while.
            obeys: Whether the incidents of the run turn detectors off and on. Not in a check,
                which uses all detectors whatever the trace says.

        Raises:
            SettingsError: One of the detectors is none.
        """
        self.graph = InteractionGraph()
        self._all = [_Part(detector) for detector in detectors]
        self._parts = self._all  # those that are on
        self.off: dict[int, tuple[int, Any]] = {}
        self._obeys = obeys
        # By what a record has changed: who is shown it, and those of them with deadlines.
        self._shown: dict[int, _Shown] = {}  # on demand
        self.not_before: int | None = None
        self._on_fault = on_fault
        timing = stopwatch if isinstance(stopwatch, Timing) else Timing(stopwatch)
        self._stopwatch, self._processor, self._limit_s = timing.wall, timing.processor, limit_s
        self.slow_s = 0.0
        self._usual = UsualCounts()
        self.left_out: Counter[str] = Counter()
        self._minute = 0
        self._raised_now: Counter[str] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)

    def feed(self, record: Record) -> list[Finding]:
        """Apply a record; return the findings due before, and the findings at the record.

        Raises:
            RuleError: The record contradicts those before it.
        """
        due, graph = self.not_before, self.graph
        if due is not None and due <= record.us:  # a monitor looks at the clock before
            return self.advance(record.us) + self.feed(record)
        graph.apply(record)
        looks, waiting = self._shown.get(graph.changed) or self._choose(record)
        return self._ask(looks, waiting, record) if looks else []

    def look(self, record: Record) -> list[Finding]:
        """Return the findings at a record, after it was applied to the graph."""
        return self._ask(*self._choose(record), record)

    def _choose(self, record: Record) -> _Shown:
        """Choose who is shown a record; a finding raises no other, so it is shown to nobody."""
        # Few sets of flags occur in a run: next time the detectors are looked up by them.
        changed = self.graph.changed
        if isinstance(record, IncidentRow):
            if self._obeys:
                self._obey(record)
            # It changes no graph: only a detector that names this kind is shown it, and after the
            # answer only one that names a request that failed.
            if self.graph.is_over:
                changed &= UNANSWERED
        parts = [part for part in self._parts if part.shown & changed]
        looks: list[tuple[_Part, _Look]] = [(part, part.detector.detect) for part in parts]
        shown = (looks, [part for part in parts if part.waits])
        if not isinstance(record, IncidentRow):  # by which detectors are turned off and on
            self._shown[changed] = shown
        return shown

    def advance(self, us: int) -> list[Finding]:
        """Return the findings due up to the moment `us` (included), in order."""
        findings: list[Finding] = []
        while self.not_before is not None and self.not_before <= us:
            due = self.due
            if due is None or due > us:
                break
            expired = [part for part in self._parts if part.due == due]
            looks: list[tuple[_Part, _Look]] = [(part, part.detector.expire) for part in expired]
            findings += self._ask(looks, expired, due)
            for part in expired:
                if part.due is not None and part.due <= due:
                    self._fail(part, "its deadline does not move on", at_once=True)
                    self._set_due(self._parts)
        return findings

    @property
    def due(self) -> int | None:
        """The moment, in microseconds, of the next finding if nothing happens before."""
        if self.not_before is not None:
            self._tell_all(lambda detector: detector.settle_due())
            self._set_due(self._parts)
        return self.not_before

    def awaited_ids(self) -> set[str]:
        """The events for detectors to raise after some time."""
        events = set[str]()
        self._tell_all(lambda detector: events.update(detector.awaited()))
        return events

    def forget(self) -> None:
        """Have detectors forget evicted history."""
        able = [part for part in self._all if not part.is_broken]  # some may be off
        self._usual.forget(self.graph)
        self._tell_all(lambda detector: detector.forget(self.graph), able)

    def _tell_all(
        self, tell: Callable[[Detector], object], parts: Iterable[_Part] | None = None
    ) -> None:
        """Call a hook of all active detectors, or of some; an exception is a failure."""
        for part in self._parts if parts is None else parts:
            try:
                tell(part.detector)
            except PART_ERRORS as error:  # a detector must never be able to stop a team
                self._fail(part, f"raised {error!r}")

    def _ask(
        self, looks: list[tuple[_Part, _Look]], waiting: list[_Part], at: Any
    ) -> list[Finding]:
        """Have detectors look at a record, or expire at a moment; return all findings, in order.

        What a detector raises is taken as a whole, or not at all. Deadlines may be moved by those
        that are `waiting`.
        """
        findings: list[Finding] = []
        graph, enabled, stopwatch = self.graph, self._parts, self._stopwatch
        seconds = self.seconds
        if stopwatch:
            began, worked = stopwatch(), self._processor() if self._processor else 0.0
        for part, look in looks:
            try:
                raised = look(graph, at)
                # As a whole: a detector that fails between two findings raises neither.
                if raised is not _NOTHING:  # which is seldom
                    raised = [_check_finding(graph, finding) for finding in raised]
            except PART_ERRORS as error:  # a detector must never be able to stop a team
                raised = _NOTHING
                self._fail(part, f"raised {error!r}")
            if stopwatch:
                now = stopwatch()
                seconds[part.name] += (took_s := now - began)
                began = now
                if took_s >= SLOW_S:
                    worked = self._judge(part, took_s, worked)
            if raised:
                us = at if type(at) is int else at.us
                for finding in raised:
                    if self._has_room(finding.pattern, us):
                        findings.append(self._weigh(part, finding))
                began = stopwatch() if stopwatch else 0.0
        if findings or enabled is not self._parts:  # a finding may move all deadlines
            self._set_due(self._parts)
            return findings
        try:
            for part in waiting:
                # Most deadlines stay the same object, so identity is the cheap first test.
                if part.detector.due is not part.due:
                    self._set_due(waiting)
                    break
        except PART_ERRORS:  # `due` may be a property
            self._set_due(waiting)
        return findings

    def _set_due(self, parts: list[_Part]) -> None:
        """Take the deadlines of the called detectors, or of all, which is exact."""
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

    def is_later(self, us: int) -> bool:
        """Whether the minute of the omitted findings is over."""
        return us // _MINUTE_US > self._minute

    def _has_room(self, pattern: str, us: int) -> bool:
        """Count a finding; return whether the minute has room for the finding."""
        if self.is_later(us):
            self._minute = us // _MINUTE_US
            self._raised_now.clear()
            self.left_out.clear()
        self._raised_now[pattern] += 1
        if self._raised_now[pattern] <= MOST_A_MINUTE:
            return True
        self.left_out[pattern] += 1
        return False

    def _weigh(self, part: _Part, finding: Finding) -> Finding:
        """Weigh a finding by the usual findings of the team, and tell the other detectors."""
        if self._usual.is_usual(self.graph, finding.key, finding.subject):
            finding = replace(finding, severity="notice")
        other_parts = [other for other in self._parts if other is not part]
        self._tell_all(lambda detector: detector.on_finding(self.graph, finding), other_parts)
        return finding

    def _judge(self, part: _Part, took_s: float, worked: float) -> float:
        """Report a slow detector after too much work; return the processor time now."""
        self.slow_s += took_s
        # By processor time: a suspended process or a busy machine is no fault of the detector.
        now = self._processor() if self._processor else worked + took_s
        if now - worked > self._limit_s:
            # Off for longer each time, never for good: the machine may only be busy.
            off_s = OFF_S << min(part.late, MOST_DOUBLED)
            took = f"took longer than {self._limit_s:g} s of processor time"
            failure = f"{took}; it is off for {off_s} s"
            self._on_fault(part.name, failure, {"place": self._all.index(part), "off_s": off_s})
        return now

    def _obey(self, row: IncidentRow) -> None:
        """Turn a slow detector off for a while, or on again, by an incident."""
        detail = row.detail if isinstance(row.detail, Mapping) else {}
        place, off_s = detail.get("place"), detail.get("off_s")
        if type(place) is not int or not 0 <= place < len(self._all):
            return
        if row.what == FAILED and type(off_s) is int and 0 < off_s < 1e9:
            self.off[place] = row.us + micros(off_s), detail.get("who")
            self._all[place].late += 1
        elif row.what == TRIED_AGAIN:
            self.off.pop(place, None)
        self._select()
        self._set_due(self._parts)

    def _fail(self, part: _Part, failure: str, *, at_once: bool = False) -> None:
        part.faults += 1
        if (at_once or part.faults >= MOST_FAULTS) and not part.is_broken:
            part.is_broken = True
            self._select()
            failure += f"; {DISABLED}"
        self._on_fault(part.name, failure)

    def _select(self) -> None:
        """Choose the detectors to call: neither disabled nor off."""
        for place, part in enumerate(self._all):
            part.is_on = not (part.is_broken or place in self.off)
            part.due = part.due if part.is_on else None
        # New lists: this may be in the middle of a walk through the old ones.
        self._parts = [part for part in self._all if part.is_on]
        self._shown = {}


def _check_finding(graph: InteractionGraph, finding: Finding) -> Finding:
    """Check the shape of a finding; add its key, and bound its evidence."""
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
    return replace(finding, evidence=bound_evidence(finding.evidence), key=key_of(graph, finding))
