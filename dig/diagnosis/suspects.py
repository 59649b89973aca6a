"""Suspects: what names the candidates of a case.

The one here is exhaustive: every agent that did something is a candidate, with what the records
show about it. It is right as long as each of them is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Protocol

from dig._util.text import counted, name
from dig.tasks.milestones import Evidence
from dig.traces.run import RecordedActivation

from .case import Case
from .components import blamed
from .concepts import Candidate
from .interventions.proposing import Oddity, oddities

LEAST = 0.1
"""The weight of an agent about which the records show nothing."""
BLAMED = 0.2
"""The weight that findings add which are about an agent."""
MOST_EVIDENCE = 3


class Suspects(Protocol):
    """Names the candidates of a case."""

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """The candidates, the likeliest first."""
        ...


class EveryAgent:
    """Every agent that did something, by what the records show about it."""

    name = "agents"

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """A candidate for each agent; its place is its first activation."""
        run = case.run
        odd: dict[str, list[Oddity]] = {}
        for one in oddities(run):
            odd.setdefault(one.agent, []).append(one)
        told = {agent for _, agents in blamed(run.records) for agent in agents}
        first: dict[str, RecordedActivation | None] = dict.fromkeys(odd)
        for activation in reversed(run.activations.values()):
            first[activation.agent] = activation
        weights = {
            agent: 1
            - (1 - LEAST)
            * prod(1 - one.weight for one in odd.get(agent, ()))
            * (1 - BLAMED * (agent in told))
            for agent in first
        }
        whole = sum(weights.values())
        found = [
            _candidate(case, agent, first[agent], weight / whole, odd.get(agent, ()))
            for agent, weight in weights.items()
        ]
        return ranked(found)


def ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates by falling share, ties by agent, with ids in this order."""
    found = sorted(candidates, key=lambda one: (-one.share, one.agent))
    return [replace(one, id=f"c{number}") for number, one in enumerate(found, 1)]


def _candidate(
    case: Case, agent: str, first: RecordedActivation | None, share: float, odd: Sequence[Oddity]
) -> Candidate:
    """An agent as a candidate.

    Args:
        case: The run.
        agent: The agent.
        first: Its first activation, if it had one.
        share: Its share.
        odd: What the records show about it.
    """
    shown = [
        replace(one.evidence, step=case.steps.get(one.activation or ""))
        for one in odd[:MOST_EVIDENCE]
    ]
    if first is not None:
        did = sum(one.agent == agent for one in case.run.activations.values())
        says = f"{name(agent)} acted {counted(did, 'time')}, first in {name(first.id)}"
        shown.append(Evidence(first.t, says, case.steps[first.id]))
    return Candidate(
        id="c0", agent=agent, share=share, by=(EveryAgent.name,),
        t=first.t if first else odd[0].evidence.t, evidence=tuple(shown),
        mechanism=odd[0].mechanism if odd else None,
        step=case.steps[first.id] if first else None, activation=first.id if first else None,
    )  # fmt: skip
