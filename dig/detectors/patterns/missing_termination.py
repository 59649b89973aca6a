"""MC, missing termination: all work is done, and nobody submits an answer.

Paper, section 5 (2).
"""

from __future__ import annotations

from typing import Any

from dig._util.text import name
from dig.detectors.explain import Story
from dig.detectors.finding import Explanation, Finding
from dig.graph.graph import InteractionGraph
from dig.graph.state import Problem

from .idle import IdleDetector


class MissingTermination(IdleDetector):
    """Raises MC when no work has been open for longer than `mc_window_s`, and no answer is due."""

    pattern = "MC"

    def __init__(self) -> None:
        """Begin with no interval under way."""
        super().__init__(_is_exhausted, lambda limits: limits.mc_window_s, _last, explain)


def _is_exhausted(problem: Problem) -> bool:
    return problem.is_posed and not problem.open and not problem.submitted


def _last(graph: InteractionGraph, problem: Problem) -> dict[str, str | None]:
    """The activation that ended last."""
    return {"last": problem.last}


def tell(subject: Any, evidence: Any) -> str:
    """MC in words."""
    last = f"the last to work was {name(evidence['last'])}" if evidence["last"] else "nobody worked"
    problem = f" on {name(subject['event'])}" if "event" in subject else ""
    return f"all work is done or lost{problem}, and nobody submits an answer; {last}"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """How the work came to its end."""
    last = finding.evidence["last"]
    paths = (Story(graph, finding).path_to(last),) if last else ()
    return Explanation(tell(finding.subject, finding.evidence) + ".", paths)
