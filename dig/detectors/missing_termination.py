"""MC, missing termination: all work is done, and nobody submits an answer.

Paper, section 5 (2).
"""

from __future__ import annotations

from collections.abc import Iterator

from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.problems import Problem
from dig.records import Record

from .idle import IdleWindow


def _is_exhausted(problem: Problem) -> bool:
    return problem.is_posed and not problem.open and not problem.submitted


class MissingTermination:
    """Raises MC when no work has been open for longer than `mc_window_s`, and no answer is due."""

    pattern = "MC"

    def __init__(self) -> None:
        """Begin with no interval under way."""
        self._idle = IdleWindow(_is_exhausted, lambda limits: limits.mc_window_s)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise MC for what the end of an activation, or a leave, lets come due."""
        for problem in self._idle.look(graph, record):
            yield _finding(graph, problem, record.us)

    def deadline(self, graph: InteractionGraph) -> int | None:
        """The moment at which the next one is raised if nothing happens before."""
        return self._idle.deadline()

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise MC for every problem whose window has passed at `us`."""
        for problem in self._idle.expire(us):
            yield _finding(graph, problem, us)


def _finding(graph: InteractionGraph, problem: Problem, us: int) -> Finding:
    return Finding("MC", graph.t, us, problem.subject, {"last": problem.last})
