"""The agents of a team: one of them, and all that it can hand over to or use as tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents import Agent, FunctionTool, Handoff

from dig.errors import SettingsError


def of(team: Any) -> list[Agent[Any]]:
    """A team's agents, the one that was given first.

    Raises:
        SettingsError: It is no agent, or two are called the same.
    """
    if not isinstance(team, Agent):
        raise SettingsError(f"{type(team).__name__} is no agent that Runner.run would take")
    found: list[Agent[Any]] = []
    waiting = [team]
    while waiting:
        agent = waiting.pop(0)
        if any(agent is known for known in found):
            continue
        if any(agent.name == known.name for known in found):
            raise SettingsError(f"two agents are called {agent.name!r}; give each its own name")
        found.append(agent)
        waiting.extend(reachable(agent))
    return found


def reachable(agent: Agent[Any]) -> Iterator[Agent[Any]]:
    """The agents that one can hand over to or use as tools; not those that code finds later."""
    for item in agent.handoffs:
        to = item._agent_ref() if isinstance(item, Handoff) and item._agent_ref else item
        if isinstance(to, Agent):
            yield to
    for tool in agent.tools:
        inner = tool._agent_instance if isinstance(tool, FunctionTool) else None
        if isinstance(inner, Agent):
            yield inner
