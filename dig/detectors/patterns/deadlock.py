"""DL, deadlock: work lies in buffers, none is on its way, and nobody makes progress.

Paper, section 5 (4).
"""

from __future__ import annotations

from typing import Any

from dig._util.text import MOST_LISTED, counted, name, names
from dig.detectors.explain import Story
from dig.detectors.finding import Explanation, Finding
from dig.graph.graph import InteractionGraph
from dig.graph.state import Problem, by_number

from .idle import IdleDetector


class Deadlock(IdleDetector):
    """Raises DL when open work has been waiting for longer than `dl_window_s`."""

    pattern = "DL"

    def __init__(self) -> None:
        """Begin with no interval under way."""
        super().__init__(_is_stuck, lambda limits: limits.dl_window_s, _waiting, explain)


def _is_stuck(problem: Problem) -> bool:
    is_one = problem.is_posed or not problem.sources  # in a session, a notice poses none
    return problem.buffered > 0 and problem.flying == 0 and is_one


def _waiting(graph: InteractionGraph, problem: Problem) -> dict[str, dict[str, list[str]]]:
    """For each agent that has some, the open events in its buffer, as generated."""
    waiting: dict[str, list[str]] = {agent: [] for agent in graph.agents}
    for event in sorted(problem.open.values(), key=by_number):
        for agent in event.copies:
            waiting[agent].append(event.id)
    return {"waiting": {agent: events for agent, events in waiting.items() if events}}


def tell(subject: Any, evidence: Any) -> str:
    """DL in words."""
    held = list(evidence["waiting"].items())
    who = [f"{name(agent)} holds {names(events)}" for agent, events in held[:MOST_LISTED]]
    if len(held) > MOST_LISTED:
        who.append(f"{counted(len(held) - MOST_LISTED, 'more agent')} wait")
    problem = f" on {name(subject['event'])}" if "event" in subject else ""
    return f"work is waiting, and nobody makes progress{problem}: {'; '.join(who)}"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """What became of the work that waits, and the way to it."""
    story = Story(graph, finding)
    first = list(dict.fromkeys(events[0] for events in finding.evidence["waiting"].values()))
    text = f"{tell(finding.subject, finding.evidence)}. {story.last_seen_of(first)}"
    return Explanation(text, story.to_all(first))
