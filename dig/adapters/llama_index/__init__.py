"""LlamaIndex: agents of a workflow hand over, or ask each other in tools.

docs/wrapping-llama-index.md has the rules.

- `runs`: a run, from the call to the result; each step of an agent passes `take_step`.
- `team`: the agents of a team, and the patches in them.
"""

from __future__ import annotations

from typing import Any

from dig.adapters.base import HOOKED, Attached, Session, WrapPlan, importing

__all__ = ["plan"]

VERSIONS = ("0.14.22", "0.14.26")
"""The lowest version that this was tested with, and the first that it was not."""


def plan(team: Any, *, tools: bool = False) -> WrapPlan:
    """Plan the wrapping of workflows of agents, or of agents; refuse other teams.

    Args:
        team: An `AgentWorkflow`, an agent, several of these, or agents by name.
        tools: Whether tools are agents `tool:NAME`, so that their calls are events.

    Raises:
        SettingsError: The team is something else, or LlamaIndex is not one that was tested.
    """
    with importing("LlamaIndex", ("llama-index-core",), VERSIONS, extra="llama-index"):
        from .team import WatchedWorkflows, members_of
    agents, workflows = members_of(team)

    def attach(session: Session) -> Attached:
        return Attached(team, WatchedWorkflows(session, agents, workflows, tools=tools).restore)

    return WrapPlan("a team of LlamaIndex agents", tuple(agents), attach, HOOKED)
