"""Rings: agents that hand on to each other again and again, in one order or in none.

A ring is found by walking back the chain of a turn (LIVELOCK, docs/meaning.md) when somebody reads
about it, so detectors pay nothing for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from dig._util.text import join_clauses, name
from dig.graph.graph import InteractionGraph
from dig.graph.history import History
from dig.graph.records import base_name

LEAST_ROUNDS = 5
"""A ring without an answer is worth a sentence from so many rounds on."""
LEAST_AT_LIMIT = 3
"""The same where the request ended at a limit."""

LOOPS = ("ER", "LOOP", "LIVELOCK")
"""The patterns of agents that go on and on."""

MOST_TURNS = 1_000
MOST_STARTS = 1_000


class Ring(NamedTuple):
    """A ring of agents.

    Attributes:
        agents: The agents in their order, the first one first; by name if there is none.
        rounds: The number of whole rounds; 0: the agents hand on in no one order.
        turns: The number of activations; neighbours of one agent are one step of a round.
    """

    agents: tuple[str, ...]
    rounds: int
    turns: int

    def text(self, written: Callable[[str], str] = name) -> str:
        """The ring in words; `written` writes the name of an agent."""
        agents = join_clauses([written(agent) for agent in self.agents])
        if not self.rounds:
            return f"{agents} have handed on to each other {self.turns} times"
        return f"{agents} have gone round {self.rounds} times; {self.turns} turns"

    @property
    def remark(self) -> str:
        """A sentence about a ring without an answer."""
        return f"{self.text()}, and there is no answer."


def ring_before(graph: InteractionGraph, activation: str, most: int = MOST_TURNS) -> Ring | None:
    """Find the ring of an ended activation; ``None``: the chain has no one order.

    Args:
        graph: The graph of the run.
        activation: The id of the newest turn.
        most: The number of turns to look back at most.
    """
    h, steps, turns, size = graph.history, list[str](), 0, 0
    v = h.activation(activation)
    while v is not None and turns < most:
        agent = base_name(h.agent(v))
        if not steps or agent != steps[-1]:
            if not size and agent in steps:
                # A caller that is answered goes back the way it came: a, b, c, b, a is no ring.
                if agent != steps[0]:
                    return None
                size = len(steps)
            if size and agent != steps[-size]:
                break
            steps.append(agent)
        turns += 1
        v = _turn_before(h, v)
    return Ring((*reversed(steps[-size:]),), len(steps) // size, turns) if size else None


def _crowd_before(graph: InteractionGraph, activation: str) -> Ring | None:
    """Find the agents before an ended activation that hand on in no one order."""
    h, crowd, steps, last, total = graph.history, None, Counter[str](), "", 0
    v = h.activation(activation)
    # A caller that goes on with an answer has its agents in order, however many are below it.
    while v is not None and total < MOST_TURNS and not _goes_on(h, v):
        if (agent := base_name(h.agent(v))) != last:
            steps[agent], last, total = steps[agent] + 1, agent, total + 1
            # An agent with every second turn is a caller that is answered.
            if LEAST_ROUNDS * len(steps) <= total > 2 * max(steps.values()) + 1:
                crowd = Ring((*sorted(steps),), 0, total)
        v = _turn_before(h, v)
    return crowd


def _goes_on(h: History, v: int) -> bool:
    """Whether an activation goes on with what its agent has begun."""
    makers = [h.generator[n] for n in h.inputs(v) if h.generator[n] >= 0]
    return len(makers) > 1 and base_name(h.agent(v)) in {base_name(h.agent(n)) for n in makers}


def _turn_before(h: History, v: int) -> int | None:
    """The activation that generated the trigger of `v` (LIVELOCK, docs/meaning.md)."""
    inputs = sorted(n for n in h.inputs(v) if h.generator[n] >= 0)
    agent = base_name(h.agent(v))
    from_others = [n for n in inputs if base_name(h.agent(h.generator[n])) != agent]
    return h.generator[(from_others or inputs)[-1]] if inputs else None


def rings_without_answer(graph: InteractionGraph, least: int = LEAST_ROUNDS) -> list[Ring]:
    """Find the rings of unanswered requests, with so many rounds at least."""
    h, rings = graph.history, dict[frozenset[str], Ring]()
    # The latest turn of each agent will do: a turn in a ring that goes on is its agent's latest.
    latest = [ended[-1] for ended in h.ended_by.values() if ended][-MOST_STARTS:]
    for activation in [] if graph.is_over else [h.activation_ids[v] for v in latest]:
        if not graph.unanswered_sources(graph.activation_sources(activation), 1):
            continue
        ring = ring_before(graph, activation)
        if ring is None or ring.rounds < least:
            ring = _crowd_before(graph, activation)
        if ring is not None:
            agents = frozenset(ring.agents)
            rings[agents] = max(ring, rings.get(agents, ring), key=lambda other: other.turns)
    return [*rings.values()]
