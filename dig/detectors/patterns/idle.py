"""Idle windows: how long a condition has held while no agent made progress.

The clock of patterns about the absence of events. For each problem there is an interval in
which the condition holds without a break and no activation ends with progress or an error. It comes
due once: at the first moment, not before its start plus the window, at which no activation is in
progress (one that has lasted longer than the activation limit, or has stalled, does not count,
unless it waits on purpose).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, ClassVar

from dig.detectors.finding import Finding, Severity
from dig.detectors.protocols import Detector
from dig.graph.graph import InteractionGraph
from dig.graph.records import UNTIMED, Record, micros
from dig.graph.state import Problem


class _Interval:
    """The memory of a problem: the last interval raised, and the next alarm."""

    __slots__ = ("alarm", "raised", "restarted")

    def __init__(self) -> None:
        self.alarm: int | None = None  # the time of its entry in the heap, if it has one
        self.raised: int | None = None  # the start of the interval that was raised last
        self.restarted = 0  # when an interval started over at the latest, but for progress

    def start(self, problem: Problem) -> int:
        """When the interval under way began, in microseconds."""
        return max(problem.since, self.restarted)

    def __copy__(self) -> _Interval:
        other = _Interval()
        other.raised, other.restarted = self.raised, self.restarted
        return other


class IdleDetector(Detector):
    """Raises a pattern after a condition has held for a whole idle window.

    A problem itself knows since when it stands as it does, so there is only to be looked at one
    for which the condition holds, and that has no alarm yet.

    Attributes:
        window: The threshold with the seconds for which the condition has to hold.
        stands: How a problem stands for which it holds: DONE or STUCK of `dig.graph.records`.
    """

    kinds = (UNTIMED,)
    window: ClassVar[str]
    stands: ClassVar[int]

    def __init__(self) -> None:
        """Begin with no interval under way."""
        self._window = self._limit = self._flag = 0  # until there is a run
        # When an interval starts over its alarm stays: it goes off too early, and is set anew.
        self._alarms: list[tuple[int, int, Problem]] = []
        self._order = count()
        self._stalled: set[str] = set()  # activations in progress for which STALL was raised

    @abstractmethod
    def _evidence(self, graph: InteractionGraph, problem: Problem) -> dict[str, Any]:
        """The evidence of the finding, at the moment of raising."""

    def detect(self, graph: InteractionGraph, record: Record) -> Sequence[Finding]:
        """Raise the pattern for problems due at an end or a leave."""
        if not self._flag:
            limits, self._flag = graph.run.limits, graph.problems.add_window(self.stands)
            self._window = micros(getattr(limits, self.window))
            self._limit = micros(limits.activation_limit_s)
        us = record.us
        due_now: list[Problem] = []
        for problem in graph.problems.touched:
            if problem.stands != self.stands:
                continue
            interval: _Interval | None = problem.marks.get(self)
            if interval is None:
                interval = problem.marks[self] = _Interval()
            start = problem.since if problem.since > interval.restarted else interval.restarted
            least = start + self._window
            alarm = interval.alarm
            if interval.raised == start or (alarm is not None and us < alarm <= least):
                continue  # the alarm goes off in time
            due = self._due_of(problem, least)
            if due is not None and due <= us:
                interval.raised = start
                due_now.append(problem)
            else:
                self._set_alarm(problem, interval, due)
        return self._findings(graph, due_now, us) if due_now else ()

    def is_waiting(self, problem: Problem) -> bool:
        """Whether the pattern is still to be raised about a problem if nothing changes."""
        interval: _Interval = problem.marks[self]
        is_raised = interval.raised == interval.start(problem)
        return not (is_raised or problem.is_over) and problem.stands == self.stands

    def settle_due(self) -> None:
        """Set `due` to the next alarm, moving early alarms to their true moment."""
        self.due = self._next()

    def _next(self) -> int | None:
        """The moment of the next finding if nothing happens before."""
        alarms = self._alarms
        while alarms:
            moment, _, problem = alarms[0]
            interval: _Interval = problem.marks[self]
            is_current = interval.alarm == moment
            due = None
            if is_current and self.is_waiting(problem):
                least = interval.start(problem) + self._window
                due = self._due_of(problem, least)
                if due is not None:
                    due = max(moment, due)  # after a failed look it was before
            if due == moment:
                return moment
            heappop(alarms)
            if is_current:
                interval.alarm, problem.timed = None, problem.timed & ~self._flag
                self._set_alarm(problem, interval, due)
        return None

    def expire(self, graph: InteractionGraph, us: int) -> Sequence[Finding]:
        """Raise the pattern for every problem at the end of its window."""
        due_now: list[Problem] = []
        while self._next() == us:
            problem = heappop(self._alarms)[2]
            interval: _Interval = problem.marks[self]
            interval.raised, interval.alarm = interval.start(problem), None
            problem.timed &= ~self._flag
            due_now.append(problem)
        self.due = self._next()
        return self._findings(graph, due_now, us)

    def on_finding(self, graph: InteractionGraph, finding: Finding) -> None:
        """Begin intervals anew for the problems of a stalled activation.

        So the healing of STALL has a window to help. The activation holds them back no more.
        """
        stalled = str(finding.subject.get("activation"))
        if finding.pattern != "STALL" or stalled not in graph.activations:
            return
        self._stalled = {stalled, *(a for a in self._stalled if a in graph.running)}
        for problem in graph.activations[stalled].problems:
            interval: _Interval | None = problem.marks.get(self)
            if interval is not None and problem.stands == self.stands:
                interval.restarted = finding.us
                self._set_alarm(problem, interval, finding.us + self._window)

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the alarms of problems that are over."""
        self._alarms = [alarm for alarm in self._alarms if not alarm[2].is_over]
        heapify(self._alarms)

    def _due_of(self, problem: Problem, least: int) -> int | None:
        """The moment at which an interval comes due, whose window ends at `least`."""
        due = least
        for activation in problem.running.values():
            if activation.waits:
                return None
            if activation.id not in self._stalled:
                due = max(least, activation.us_start + self._limit)  # the latest one counts
        return due

    def _set_alarm(self, problem: Problem, interval: _Interval, due: int | None) -> None:
        """Set an alarm for a problem, unless there is an earlier alarm."""
        if due is not None and (interval.alarm is None or due < interval.alarm):
            interval.alarm = due
            # Not an alarm that a long activation puts off: when that ends, an earlier one is set.
            if due <= interval.start(problem) + self._window:
                problem.timed |= self._flag
            heappush(self._alarms, (due, next(self._order), problem))
            self.due = self._alarms[0][0]

    def _findings(self, graph: InteractionGraph, problems: list[Problem], us: int) -> list[Finding]:
        """Make a finding for each posed event of the problems; or for the run."""
        h = graph.history
        subjects: list[tuple[dict[str, str], Problem]] = [({}, problem) for problem in problems]
        if graph.run.session:
            posed = sorted((n, i) for i, problem in enumerate(problems) for n in problem.sources)
            subjects = [({"event": h.event_ids[h.source_events[n]]}, problems[i]) for n, i in posed]
        findings: list[Finding] = []
        for subject, problem in subjects:
            # A long activation may still make progress, unless it was raised as STALL.
            severity: Severity = "error" if problem.running.keys() <= self._stalled else "warning"
            evidence = self._evidence(graph, problem)
            finding = Finding(self.pattern, graph.t, us, subject, evidence, severity=severity)
            findings.append(finding)
        return findings
