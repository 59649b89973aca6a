"""Pydantic AI: agents ask each other in tools or in code (docs/wrapping-pydantic-ai.md).

- `runs`: the runs of wrapped agents, which all begin with `Agent.iter`.
- `hooks`: a capability that each run is given: notes, the budget, tools and the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig.adapters.base import HOOKED, Attached, Session, WrapPlan, importing

__all__ = ["plan"]

VERSIONS = ("2.10.0", "2.69")
"""The lowest version that this was tested with, and the first that it was not."""


def plan(team: Any, *, tools: bool = False) -> WrapPlan:
    """Plan the wrapping of agents; refuse other teams.

    Args:
        team: An agent, several agents, or agents by name.
        tools: Whether function tools are agents `tool:NAME`, so that their calls are events.

    Raises:
        SettingsError: The team is something else, or Pydantic AI is not one that was tested.
    """
    with importing("Pydantic AI", ("pydantic-ai-slim",), VERSIONS, extra="pydantic-ai"):
        from .runs import WatchedAgents, agents_of
    agents: Mapping[str, Any] = agents_of(team)

    def attach(session: Session) -> Attached:
        return Attached(team, WatchedAgents(session, agents, tools=tools).restore)

    return WrapPlan("a team of Pydantic AI agents", tuple(agents), attach, HOOKED)
