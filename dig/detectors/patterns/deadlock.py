"""DL, deadlock: work lies in buffers, nothing is on its way, no agent makes progress.

Paper, section 5 (4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dig._util.text import MOST_LISTED, counted, name, names
from dig.detectors.finding import Finding
from dig.detectors.interventions import Create, Intervention, Reroute
from dig.detectors.ladder import (
    LadderStep,
    Progress,
    agents_behind,
    is_worked_on,
    open_about,
    open_problem,
    open_work,
    redo,
    renew,
    restart,
)
from dig.detectors.notes import quote, quote_all
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import STUCK
from dig.graph.state import Problem, by_number

from .idle import IdleDetector


class Deadlock(IdleDetector):
    """Raises DL when open work has been waiting for longer than `dl_window_s`."""

    pattern = "DL"
    recorded_as = "dig.detectors.deadlock.Deadlock"
    window = "dl_window_s"
    stands = STUCK

    def _evidence(self, graph: InteractionGraph, problem: Problem) -> dict[str, Any]:
        """The open events in each agent's buffer, in order of generation."""
        waiting: dict[str, list[str]] = {agent: [] for agent in graph.agents}
        for event in sorted(problem.open.values(), key=by_number):
            for agent in event.copies:
                waiting[agent].append(event.id)
        return {"waiting": {agent: events for agent, events in waiting.items() if events}}


def describe(subject: Any, evidence: Any) -> str:
    """DL in words."""
    held = list(evidence["waiting"].items())
    holders = [f"{name(agent)} holds {names(events)}" for agent, events in held[:MOST_LISTED]]
    if len(held) > MOST_LISTED:
        holders.append(f"{counted(len(held) - MOST_LISTED, 'more agent')} wait")
    problem = f" on {name(subject['event'])}" if "event" in subject else ""
    return f"work is waiting, and nobody makes progress{problem}: {'; '.join(holders)}"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The fate of the waiting work, with paths."""
    first = list(dict.fromkeys(events[0] for events in finding.evidence["waiting"].values()))
    return paths.last_seen_of(first), paths.to_all(first)


class HealDeadlock(Healer):
    """Wakes all agents with a list of everybody's work."""

    recorded_as = "dig.detectors.healing.HealDeadlock"

    def about(self, finding: Finding) -> object:
        """The waiting work by agent: a deadlock about other work is another finding."""
        return finding.evidence["waiting"]

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Create a system event for all present agents."""
        held = list(finding.evidence["waiting"].items())
        first = held[:MOST_LISTED]
        holders = "; ".join(f"{quote(agent)} holds {quote_all(events)}" for agent, events in first)
        more = f"; and {len(held) - MOST_LISTED} more agents" if len(held) > MOST_LISTED else ""
        note = (
            "Nobody has made progress for a while, and work is still waiting: "
            f"{holders}{more}. Each of you: act on what you hold, pass it on, or discard it; "
            "do not wait for others that wait for you."
        )
        yield Create(note, tuple(graph.agents))

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        """Wake all; then give the waiting work to another agent; then begin anew with another."""
        waiting = finding.evidence["waiting"]
        if step.number == 1:
            yield from self.heal(graph, finding)
            failed = [agent for agent in waiting if step.troubles.get(agent) == "failed"]
            yield from _reassign(graph, finding, step, failed, "had this, and failed")
        elif step.number == 2:
            deeds = "did not act on this, although asked to"
            again = list(renew(graph, finding, step))
            yield from again or _reassign(graph, finding, step, [*waiting], deeds)
        else:
            again = redo(graph, finding, step)
            yield from again or restart(graph, finding, step, _idle(graph, waiting))

    def progress(self, graph: InteractionGraph, finding: Finding, step: LadderStep) -> Progress:
        """Whether each agent has moved its work, or an agent is at work."""
        held, problem = finding.evidence["waiting"].items(), open_problem(graph, finding)
        if problem is None:
            return "made"
        if not any(
            agent in event.copies for agent, events in held for event in open_work(graph, events)
        ):
            return "untold"
        return "under way" if is_worked_on(graph, problem, step) else "none"


def _idle(graph: InteractionGraph, waiting: Mapping[str, Sequence[str]]) -> list[str]:
    """The agents with other work than returns for themselves."""
    return [
        agent
        for agent, events in waiting.items()
        if any(
            agent not in agents_behind(graph.history, event.n) for event in open_work(graph, events)
        )
    ]


def _reassign(
    graph: InteractionGraph, finding: Finding, step: LadderStep, waiting: Sequence[str], deeds: str
) -> Iterator[Intervention]:
    """Give the work of some agents to another agent, if there is another.

    Args:
        graph: The graph as it stands.
        finding: The deadlock.
        step: The step.
        waiting: The agents.
        deeds: The deeds of these agents, for the note.
    """
    helper = step.helper(graph, waiting) if waiting else None
    holders = tuple(agent for agent in waiting if agent != helper)
    if helper is None or not holders:
        return
    note = (
        f"{quote_all(holders)} {deeds}. It is yours now: take over what {quote_all(holders)} had "
        "to do, and do not wait for them."
    )
    for event in open_about(graph, finding):
        if helper not in event.copies and not event.copies.keys().isdisjoint(holders):
            yield Reroute(event.id, note, (helper,), action="reassign", without=holders)
