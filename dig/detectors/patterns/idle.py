"""Idle windows: how long a condition has held while nobody made progress.

The clock of patterns about the absence of events. For each problem there is an interval in
which the condition holds without a break and no activation ends with progress. It comes due once:
at the first moment, not before its start plus the window, at which no activation is in progress
(one that has lasted longer than the activation limit does not count).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Any

from dig.detectors.finding import Explanation, Finding
from dig.graph.graph import InteractionGraph
from dig.graph.records import CHANGING, Join, Limits, Record, micros
from dig.graph.state import Problem


class _Interval:
    """What is remembered about one problem."""

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


class IdleDetector:
    """A pattern that is raised when a condition has held for a whole idle window."""

    pattern: str
    kinds = tuple(kind for kind in CHANGING if kind is not Join)

    def __init__(
        self,
        condition: Callable[[Problem], bool],
        window_s: Callable[[Limits], float],
        evidence: Callable[[InteractionGraph, Problem], dict[str, Any]],
        why: Callable[[InteractionGraph, Finding], Explanation],
    ) -> None:
        """Begin with no interval under way.

        Args:
            condition: What has to hold for a problem.
            window_s: The limit that says for how long, in seconds.
            evidence: What proves it, at the moment of raising.
            why: Explains a finding of it.
        """
        self._condition = condition
        self._window_s = window_s
        self._evidence = evidence
        self._why = why
        self._window = 0
        self._limit = 0
        # When an interval starts over its alarm stays: it goes off too early, and is set anew.
        self._alarms: list[tuple[int, int, Problem]] = []
        self._order = count()

    def detect(self, graph: InteractionGraph, record: Record) -> Sequence[Finding]:
        """Raise the pattern for what the end of an activation, or a leave, lets come due."""
        if graph.t == 0:
            limits = graph.run.limits
            self._window = micros(self._window_s(limits))
            self._limit = micros(limits.activation_limit_s)
        ended, us = graph.ended, record.us
        starts_over = ended.problems if ended is not None and ended.is_progress else ()
        due_now: list[Problem] = []
        for problem in graph.problems.touched:
            interval: _Interval | None = problem.marks.get(self)
            if problem.is_over or not self._condition(problem):
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

    def deadline(self, graph: InteractionGraph) -> int | None:
        """The moment at which it is raised next if nothing happens before."""
        alarms = self._alarms
        while alarms:
            moment, _, problem = alarms[0]
            interval: _Interval = problem.marks[self]
            if interval.alarm != moment or interval.start is None or interval.is_raised:
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
        while self.deadline(graph) == us:
            problem = heappop(self._alarms)[2]
            interval = problem.marks[self]
            interval.is_raised, interval.alarm = True, None
            due_now.append(problem)
        return self._findings(graph, due_now, us)

    def let_go(self, graph: InteractionGraph) -> None:
        """Forget the alarms of problems that are over; one that is not may stand before them."""
        self._alarms = [alarm for alarm in self._alarms if not alarm[2].is_over]
        heapify(self._alarms)

    def _set(self, problem: Problem, interval: _Interval) -> None:
        """Work out when an interval comes due, and see to it that there is an alarm by then."""
        assert interval.start is not None
        due = interval.start + self._window
        if problem.running:
            latest = next(reversed(problem.running.values()))
            due = max(due, latest.us_start + self._limit)
        interval.due = due
        if interval.alarm is None or due < interval.alarm:
            interval.alarm = due
            heappush(self._alarms, (due, next(self._order), problem))

    def _findings(self, graph: InteractionGraph, problems: list[Problem], us: int) -> list[Finding]:
        """One for each event that poses one of the problems, as generated; or for the run."""
        h = graph.history
        subjects: list[tuple[dict[str, str], Problem]] = [({}, problem) for problem in problems]
        if graph.run.session:
            posed = sorted((n, i) for i, one in enumerate(problems) for n in one.sources)
            subjects = [({"event": h.event_ids[h.source_events[n]]}, problems[i]) for n, i in posed]
        return [
            Finding(self.pattern, graph.t, us, subject, self._evidence(graph, one), why=self._why)
            for subject, one in subjects
        ]
