"""MC, missing termination: all work is done, and no agent submits an answer.

Paper, section 5 (2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dig._util.text import name
from dig.detectors.finding import Finding
from dig.detectors.interventions import Create, Intervention
from dig.detectors.ladder import LadderStep, Progress, is_worked_on, open_problem, redo, restart
from dig.detectors.notes import quote
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import DONE
from dig.graph.state import Problem

from .idle import IdleDetector


class MissingTermination(IdleDetector):
    """Raises MC when no work has been open for longer than `mc_window_s`, and no answer is due."""

    pattern = "MC"
    recorded_as = "dig.detectors.missing_termination.MissingTermination"
    window = "mc_window_s"
    stands = DONE

    def _evidence(self, graph: InteractionGraph, problem: Problem) -> dict[str, Any]:
        """The last activation."""
        return {"last": problem.last}


def describe(subject: Any, evidence: Any) -> str:
    """MC in words."""
    last = f"the last to work was {name(evidence['last'])}" if evidence["last"] else "nobody worked"
    problem = f" on {name(subject['event'])}" if "event" in subject else ""
    return f"all work is done or lost{problem}, and nobody submits an answer; {last}"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The path to the last activation."""
    last = finding.evidence["last"]
    return "", (paths.path_to(last),) if last else ()


class HealMissingTermination(Healer):
    """Tells the last agent at work to submit; if it is gone, all agents."""

    recorded_as = "dig.detectors.healing.HealMissingTermination"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Create a system event."""
        agent = _last(graph, finding)
        problem = finding.subject.get("event")
        to = f" to {quote(problem)}" if problem else ""
        note = (
            f"All work is done or lost, and no answer{to} has been submitted. "
            "Submit the answer now, from what you have."
        )
        yield Create(note, (agent,) if agent in graph.agents and agent else tuple(graph.agents))

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        """Ask the last agent at work; then another; then begin anew with a further agent."""
        last = _last(graph, finding)
        without = () if last is None else (last,)
        has_failed = last is not None and step.troubles.get(last) == "failed"
        again = redo(graph, finding, step)
        if again:
            yield from again
        elif step.number == 1 and not has_failed:
            yield from self.heal(graph, finding)
        elif step.number <= 2 and (helper := step.helper(graph, without)):
            has = "has failed" if has_failed else "was asked to, and has not"
            reason = f": {quote(last)} {has}" if last is not None else ""
            note = (
                f"All work is done or lost, and no answer has been submitted{reason}. "
                "Submit the answer now, from what you have."
            )
            yield Create(note, (helper,), without=without)
        else:
            yield from restart(graph, finding, step)

    def progress(self, graph: InteractionGraph, finding: Finding, step: LadderStep) -> Progress:
        """Whether there is work again, or an answer, or an agent is looking."""
        problem = open_problem(graph, finding)
        if problem is None or problem.open:
            return "made"
        return "under way" if is_worked_on(graph, problem, step) else "none"


def _last(graph: InteractionGraph, finding: Finding) -> str | None:
    """The agent of the last activation, if still in the history."""
    last = finding.evidence["last"]
    v = None if last is None else graph.history.activation(last)
    return None if v is None else graph.history.agent(v)
