"""DL, deadlock: work lies in buffers, none is on its way, and nobody makes progress.

Paper, section 5 (4).
"""

from __future__ import annotations

from dig.graph import InteractionGraph
from dig.problems import Problem
from dig.state import by_number

from .idle import IdleDetector


class Deadlock(IdleDetector):
    """Raises DL when open work has been waiting for longer than `dl_window_s`."""

    pattern = "DL"

    def __init__(self) -> None:
        """Begin with no interval under way."""
        super().__init__(_is_stuck, lambda limits: limits.dl_window_s, _waiting)


def _is_stuck(problem: Problem) -> bool:
    return problem.buffered > 0 and problem.flying == 0


def _waiting(graph: InteractionGraph, problem: Problem) -> dict[str, dict[str, list[str]]]:
    """For each agent that has some, the open events in its buffer, as generated."""
    waiting: dict[str, list[str]] = {agent: [] for agent in graph.agents}
    for event in sorted(problem.open.values(), key=by_number):
        for agent in event.copies:
            waiting[agent].append(event.id)
    return {"waiting": {agent: events for agent, events in waiting.items() if events}}
