"""Holders: agents with work in front of them, or used up, in a standstill, the earliest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dig._util.text import counted, join_clauses, name
from dig.graph.graph import InteractionGraph
from dig.graph.records import End, base_name
from dig.graph.words import MOST_NAMED

from .ladder import agents_behind


class Holder(NamedTuple):
    """An agent with waiting work.

    Attributes:
        agent: Its name.
        number: The number of messages.
        end: The end of its latest turn; ``None``: it had none.
        waits_for: The other holders, if these were given their work by this agent; the agent
            waits for them, and let nothing lie itself.
    """

    agent: str
    number: int
    end: End | None
    waits_for: tuple[str, ...]

    @property
    def says(self) -> str:
        """The deed of the agent, as a predicate in the past."""
        work = counted(self.number, "message")
        if self.waits_for:
            waits_for = [f"`{name(agent)}`" for agent in self.waits_for]
            agents = join_clauses(waits_for, MOST_NAMED)
            return f"waited for {agents}, with {work} in front of it"
        return f"left {work} lying"


def list_holders(
    graph: InteractionGraph, latest: Mapping[str, End], waiting: Mapping[str, Iterable[str]]
) -> list[Holder]:
    """List the holders: first the agents that wait for no other agent, then by time.

    Args:
        graph: The graph of the run.
        latest: The end of the latest turn, by agent.
        waiting: The events in front of each agent.
    """
    h, behind, number = graph.history, dict[str, set[str]](), dict[str, int]()
    for agent, events in waiting.items():
        ids = map(str, events) if isinstance(events, list | tuple) else ()  # it may be anything
        numbers = [n for event in ids if (n := h.event(event)) is not None]
        agents = {base_name(agent_behind) for n in numbers for agent_behind in agents_behind(h, n)}
        agents |= {base_name(sender) for n in numbers if (sender := h.sender(n))}
        behind[base_name(agent)] = behind.get(base_name(agent), set()) | agents
        number[base_name(agent)] = number.get(base_name(agent), 0) + len(numbers)
    holders = [
        Holder(
            agent, number[agent], latest.get(agent),
            tuple(b for b in behind if agent in behind[b] - {b} and b not in behind[agent]),
        )
        for agent in behind if number[agent]
    ]  # fmt: skip
    return sorted(holders, key=lambda each: (each.waits_for != (), each.end.us if each.end else 0))


def find_keeper(
    graph: InteractionGraph, subject: Mapping[str, Any], silent: Mapping[str, End]
) -> Holder | None:
    """Find the agent that consumed the last work and put nothing out; ``None``: nobody did.

    Args:
        graph: The graph of the run.
        subject: The subject of a finding of MC.
        silent: The end of the latest turn that consumed and put nothing out, by agent.
    """
    h, about = graph.history, graph.activations_about(graph.sources_about(subject))
    # Work that was put out later was lost elsewhere.
    latest = max((h.t_end[v] for v in about if h.outputs(v)), default=-1)
    keepers = [
        Holder(agent, number, end, ())
        for agent, end in silent.items()
        if end.t > latest and (v := h.activation(end.activation)) in about
        and v is not None and (number := sum(map(h.is_work, h.inputs(v))))
    ]  # fmt: skip
    return max(keepers, key=lambda each: each.number, default=None)
