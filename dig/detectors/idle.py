"""Idle windows: how long a condition has held while nobody made progress.

The clock of patterns about the absence of events. For each problem there is an interval in
which the condition holds without a break and no activation ends with progress. It comes due once:
at the first moment, not before its start plus the window, at which no activation is in progress
(one that has lasted longer than the activation limit does not count).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any

from dig.explain import Explanation
from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.problems import Problem
from dig.records import SYSTEM, End, Limits, Record, micros
from dig.state import Activation


class _Interval:
    __slots__ = ("alarm", "is_raised", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.is_raised = False
        self.alarm: int | None = None  # the earliest entry of it in the heap


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
        self._intervals: dict[Problem, _Interval] = {}
        # Alarms are kept lazily: an interval that starts over leaves its old alarm in the heap,
        # which finds out the true time when it goes off.
        self._alarms: list[tuple[int, int, Problem]] = []

    def look(self, graph: InteractionGraph, record: Record) -> Iterator[Problem]:
        """Take a record into account; yield the problems whose interval it lets come due."""
        if graph.t == 0:
            limits = graph.run.limits
            self._window = micros(self._window_s(limits))
            self._limit = micros(limits.activation_limit_s)
        starts_over: tuple[Problem, ...] = ()
        if graph.ended is not None and isinstance(record, End):
            starts_over = graph.ended.problems if is_progress(graph.ended, record) else ()
        for problem in sorted(graph.problems.touched, key=_number):
            if problem.answered or not self._condition(problem):
                self._intervals.pop(problem, None)
                continue
            interval = self._intervals.get(problem)
            if interval is None or problem in starts_over:
                interval = self._intervals[problem] = _Interval(record.us)
            if not interval.is_raised:
                due = self._due(problem, interval)
                if due <= record.us:
                    interval.is_raised = True
                    yield problem
                elif interval.alarm is None or due < interval.alarm:
                    interval.alarm = due
                    heappush(self._alarms, (due, problem.number, problem))

    def deadline(self) -> int | None:
        """The next moment at which an interval comes due if nothing happens before."""
        while self._alarms:
            moment, number, problem = self._alarms[0]
            interval = self._intervals.get(problem)
            if interval is not None and interval.alarm == moment and not interval.is_raised:
                due = self._due(problem, interval)
                if due == moment:
                    return moment
                interval.alarm = due
                heappush(self._alarms, (due, number, problem))
            heappop(self._alarms)
        return None

    def expire(self, us: int) -> Iterator[Problem]:
        """Yield the problems whose interval comes due at `us`, as generated."""
        while self.deadline() == us:
            problem = heappop(self._alarms)[2]
            self._intervals[problem].is_raised = True
            yield problem

    def _due(self, problem: Problem, interval: _Interval) -> int:
        due = interval.start + self._window
        if problem.running:
            latest = next(reversed(problem.running.values()))
            due = max(due, latest.us_start + self._limit)
        return due


class IdleDetector:
    """A pattern that is raised when a condition has held for a whole idle window."""

    pattern: str

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

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise the pattern for what the end of an activation, or a leave, lets come due."""
        for problem in self._idle.look(graph, record):
            yield self._finding(graph, problem, record.us)

    def deadline(self, graph: InteractionGraph) -> int | None:
        """The moment at which it is raised next if nothing happens before."""
        return self._idle.deadline()

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise the pattern for every problem whose window has passed at `us`."""
        for problem in self._idle.expire(us):
            yield self._finding(graph, problem, us)

    def _finding(self, graph: InteractionGraph, problem: Problem, us: int) -> Finding:
        evidence = self._evidence(graph, problem)
        return Finding(self.pattern, graph.t, us, problem.subject, evidence, why=self._why)


def is_progress(activation: Activation, end: End) -> bool:
    """Whether an activation ended with an output, or with a fate other than `delay`."""
    named = {fate.event for fate in end.fates}
    return (
        bool(end.outputs)
        or any(fate.fate != "delay" for fate in end.fates)
        or any(e.by == SYSTEM and e.id not in named for e in activation.inputs)
    )


def _number(problem: Problem) -> int:
    return problem.number
