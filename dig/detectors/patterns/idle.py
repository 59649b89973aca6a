"""Idle windows: how long a condition has held while no agent made progress.

The clock of patterns about the absence of events. For each problem there is an interval in
which the condition holds without a break and no activation ends with progress. It comes due once:
at the first moment, not before its start plus the window, at which no activation is in progress
(one that has lasted longer than the activation limit, or has stalled, does not count).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Any

from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector
from dig.graph.graph import InteractionGraph
from dig.graph.records import Limits, Record, micros
from dig.graph.state import Problem


class _Interval:
    """The interval of one problem."""

    __slots__ = ("alarm", "due", "is_raised", "start")

    def __init__(self) -> None:
        self.start: int | None = None  # of the interval under way
        self.is_raised = False
        self.due = 0  # when it was to be raised, at the latest look
        self.alarm: int | None = None  # the time of its entry in the heap, if it has one

    @property
    def is_pending(self) -> bool:
        """Whether the pattern is still to be raised when nothing changes."""
        return self.start is not None and not self.is_raised

    def __copy__(self) -> _Interval:
        other = _Interval()
        other.start, other.is_raised, other.due = self.start, self.is_raised, self.due
        return other


class IdleDetector(Detector):
    """A pattern that is raised when a condition has held for a whole idle window."""

    def __init__(self) -> None:
        """Begin with no interval under way."""
        self._window = self._limit = 0  # until there is a run
        # When an interval starts over its alarm stays: it goes off too early, and is set anew.
        self._alarms: list[tuple[int, int, Problem]] = []
        self._order = count()
        self._stalled: set[str] = set()  # activations in progress for which STALL was raised

    @abstractmethod
    def _window_s(self, limits: Limits) -> float:
        """The seconds for which the condition has to hold."""

    @abstractmethod
    def _holds(self, problem: Problem) -> bool:
        """Whether the condition holds for a problem."""

    @abstractmethod
    def _evidence(self, graph: InteractionGraph, problem: Problem) -> dict[str, Any]:
        """The evidence of the finding, at the moment of raising."""

    def detect(self, graph: InteractionGraph, record: Record) -> Sequence[Finding]:
        """Raise the pattern for what the end of an activation, or a leave, lets come due."""
        if not self._window:
            limits = graph.run.limits
            self._window = micros(self._window_s(limits))
            self._limit = micros(limits.activation_limit_s)
        ended, us = graph.ended, record.us
        starts_over = ended.problems if ended is not None and ended.is_progress else ()
        due_now: list[Problem] = []
        for problem in graph.problems.touched:
            interval: _Interval | None = problem.marks.get(self)
            if not self._holds(problem):
                if interval is not None:
                    interval.start = None
                continue
            if interval is None:
                interval = problem.marks[self] = _Interval()
            if interval.start is None or problem in starts_over:
                interval.start = us
                interval.is_raised = False
            if not interval.is_raised:
                self._set(problem, interval)
                if interval.due <= us:
                    interval.is_raised = True
                    due_now.append(problem)
        return self._findings(graph, due_now, us) if due_now else ()

    def settle_due(self) -> None:
        """Set `due` to the moment of the next alarm that is not too early."""
        self.due = self._next()

    def _next(self) -> int | None:
        """The moment at which it is raised next if nothing happens before."""
        alarms = self._alarms
        while alarms:
            moment, _, problem = alarms[0]
            interval: _Interval = problem.marks[self]
            is_over = problem.is_over or interval.start is None or interval.is_raised
            if interval.alarm != moment or is_over:
                if interval.alarm == moment:
                    interval.alarm = None
                heappop(alarms)
            elif interval.due != moment:
                interval.alarm = interval.due
                heapreplace(alarms, (interval.due, next(self._order), problem))
            else:
                return moment
        return None

    def expire(self, graph: InteractionGraph, us: int) -> Sequence[Finding]:
        """Raise the pattern for every problem whose window has passed at `us`."""
        due_now: list[Problem] = []
        while self._next() == us:
            problem = heappop(self._alarms)[2]
            interval = problem.marks[self]
            interval.is_raised, interval.alarm = True, None
            due_now.append(problem)
        self.due = self._next()
        return self._findings(graph, due_now, us)

    def on_finding(self, graph: InteractionGraph, finding: Finding) -> None:
        """Begin the intervals anew that an activation concerns for which STALL was raised.

        So the healing of STALL has a window to help. The activation holds them back no more.
        """
        stalled = str(finding.subject.get("activation"))
        if finding.pattern != "STALL" or stalled not in graph.activations:
            return
        self._stalled = {stalled, *(one for one in self._stalled if one in graph.running)}
        for problem in graph.activations[stalled].problems:
            interval: _Interval | None = problem.marks.get(self)
            if interval is not None and interval.start is not None:
                interval.start, interval.is_raised = finding.us, False
                self._set(problem, interval)

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the alarms of problems that are over; one that is not may stand before them."""
        self._alarms = [alarm for alarm in self._alarms if not alarm[2].is_over]
        heapify(self._alarms)

    def _set(self, problem: Problem, interval: _Interval) -> None:
        """Work out when an interval comes due, and see to it that there is an alarm by then."""
        assert interval.start is not None
        due = interval.start + self._window
        for latest in reversed(problem.running.values()):
            if latest.id not in self._stalled:
                due = max(due, latest.us_start + self._limit)
                break
        interval.due = due
        if interval.alarm is None or due < interval.alarm:
            interval.alarm = due
            heappush(self._alarms, (due, next(self._order), problem))
            self.due = self._alarms[0][0]

    def _findings(self, graph: InteractionGraph, problems: list[Problem], us: int) -> list[Finding]:
        """One for each event that poses one of the problems, as generated; or for the run."""
        h = graph.history
        subjects: list[tuple[dict[str, str], Problem]] = [({}, problem) for problem in problems]
        if graph.run.session:
            posed = sorted((n, i) for i, one in enumerate(problems) for n in one.sources)
            subjects = [({"event": h.event_ids[h.source_events[n]]}, problems[i]) for n, i in posed]
        return [
            Finding(
                self.pattern, graph.t, us, subject, self._evidence(graph, one), severity="error"
            )
            for subject, one in subjects
        ]
