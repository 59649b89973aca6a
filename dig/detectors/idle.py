"""Idle windows: how long a condition has held while nobody made progress.

The clock of patterns about the absence of events. For each problem there is an interval in
which the condition holds without a break and no activation ends with progress. It comes due once:
at the first moment, not before its start plus the window, at which no activation is in progress
(one that has lasted longer than the activation limit does not count).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import Any

from dig.explain import Explanation
from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.problems import Problem
from dig.records import CHANGING, Limits, Record, micros


class _Interval:
    """What is remembered about one problem."""

    __slots__ = ("alarm", "due", "is_raised", "start")

    def __init__(self) -> None:
        self.start: int | None = None  # of the interval under way
        self.is_raised = False
        self.due = 0  # when it was to be raised, at the latest look
        self.alarm: int | None = None  # the time of its entry in the heap, if it has one

    def __copy__(self) -> _Interval:
        other = _Interval()
        other.start, other.is_raised, other.due = self.start, self.is_raised, self.due
        return other


class IdleWindow:
    """Follows one condition over all problems of a run."""

    def __init__(
        self, condition: Callable[[Problem], bool], window_s: Callable[[Limits], float]
    ) -> None:
        """Set up for a condition and the limit that holds its window."""
        self._condition = condition
        self._window_s = window_s
        self._window = 0
        self._limit = 0
        # When an interval starts over its alarm stays: it goes off too early, and is set anew.
        self._alarms: list[tuple[int, int, Problem]] = []
        self._order = count()

    def look(self, graph: InteractionGraph, record: Record) -> list[Problem]:
        """Take a record into account; return the problems whose interval it lets come due."""
        if graph.t == 0:
            limits = graph.run.limits
            self._window = micros(self._window_s(limits))
            self._limit = micros(limits.activation_limit_s)
        ended, due_now = graph.ended, []
        starts_over = ended.problems if ended is not None and ended.is_progress else ()
        for problem in graph.problems.touched:
            interval: _Interval | None = problem.marks.get(self)
            if problem.is_over or not self._condition(problem):
                if interval is not None:
                    interval.start = None
                continue
            if interval is None:
                interval = problem.marks[self] = _Interval()
            if interval.start is None or problem in starts_over:
                interval.start = record.us
                interval.is_raised = False
            if not interval.is_raised:
                interval.due = self._due(problem, interval.start)
                if interval.due <= record.us:
                    interval.is_raised = True
                    due_now.append(problem)
                elif interval.alarm is None or interval.due < interval.alarm:
                    interval.alarm = interval.due
                    heappush(self._alarms, (interval.due, next(self._order), problem))
        return due_now

    def deadline(self) -> int | None:
        """The next moment at which an interval comes due if nothing happens before."""
        while self._alarms:
            moment, _, problem = self._alarms[0]
            interval: _Interval = problem.marks[self]
            if interval.alarm != moment or interval.start is None or interval.is_raised:
                if interval.alarm == moment:
                    interval.alarm = None
                heappop(self._alarms)
            elif interval.due != moment:
                interval.alarm = interval.due
                heapreplace(self._alarms, (interval.due, next(self._order), problem))
            else:
                return moment
        return None

    def expire(self, us: int) -> list[Problem]:
        """The problems whose interval comes due at `us`."""
        due_now = []
        while self.deadline() == us:
            problem = heappop(self._alarms)[2]
            interval = problem.marks[self]
            interval.is_raised, interval.alarm = True, None
            due_now.append(problem)
        return due_now

    def _due(self, problem: Problem, start: int) -> int:
        due = start + self._window
        if problem.running:
            latest = next(reversed(problem.running.values()))
            due = max(due, latest.us_start + self._limit)
        return due


class IdleDetector:
    """A pattern that is raised when a condition has held for a whole idle window."""

    pattern: str
    kinds = CHANGING

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
        self._idle = IdleWindow(condition, window_s)
        self._evidence = evidence
        self._why = why

    def detect(self, graph: InteractionGraph, record: Record) -> list[Finding]:
        """Raise the pattern for what the end of an activation, or a leave, lets come due."""
        problems = self._idle.look(graph, record)
        return self._findings(graph, problems, record.us) if problems else []

    def deadline(self, graph: InteractionGraph) -> int | None:
        """The moment at which it is raised next if nothing happens before."""
        return self._idle.deadline()

    def expire(self, graph: InteractionGraph, us: int) -> list[Finding]:
        """Raise the pattern for every problem whose window has passed at `us`."""
        return self._findings(graph, self._idle.expire(us), us)

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
