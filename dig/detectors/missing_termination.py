"""MC, missing termination: all work is done, and nobody submits an answer.

Paper, section 5 (2).
"""

from __future__ import annotations

from dig.graph import InteractionGraph
from dig.problems import Problem

from .idle import IdleDetector


class MissingTermination(IdleDetector):
    """Raises MC when no work has been open for longer than `mc_window_s`, and no answer is due."""

    pattern = "MC"

    def __init__(self) -> None:
        """Begin with no interval under way."""
        super().__init__(_is_exhausted, lambda limits: limits.mc_window_s, _last)


def _is_exhausted(problem: Problem) -> bool:
    return problem.is_posed and not problem.open and not problem.submitted


def _last(graph: InteractionGraph, problem: Problem) -> dict[str, str | None]:
    """The activation that ended last."""
    return {"last": problem.last}
