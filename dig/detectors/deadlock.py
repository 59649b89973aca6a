"""DL, deadlock: work lies in buffers, none is on its way, and nobody makes progress.

Paper, section 5 (4).
"""

from __future__ import annotations

from collections.abc import Iterator

from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.problems import Problem
from dig.records import Record

from .idle import IdleWindow


def _is_stuck(problem: Problem) -> bool:
    return problem.buffered > 0 and problem.flying == 0


class Deadlock:
    """Raises DL when open work has been waiting for longer than `dl_window_s`."""

    pattern = "DL"

    def __init__(self) -> None:
        """Begin with no interval under way."""
        self._idle = IdleWindow(_is_stuck, lambda limits: limits.dl_window_s)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise DL for what the end of an activation, or a leave, lets come due."""
        for problem in self._idle.look(graph, record):
            yield _finding(graph, problem, record.us)

    def deadline(self, graph: InteractionGraph) -> int | None:
        """The moment at which the next deadlock is raised if nothing happens before."""
        return self._idle.deadline()

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise DL for every problem whose window has passed at `us`."""
        for problem in self._idle.expire(us):
            yield _finding(graph, problem, us)


def _finding(graph: InteractionGraph, problem: Problem, us: int) -> Finding:
    waiting: dict[str, list[str]] = {agent: [] for agent in graph.agents}
    for event in sorted(problem.open.values(), key=lambda event: event.n):
        for agent in event.copies:
            waiting[agent].append(event.id)
    held = {agent: events for agent, events in waiting.items() if events}
    return Finding("DL", graph.t, us, problem.subject, {"waiting": held})
