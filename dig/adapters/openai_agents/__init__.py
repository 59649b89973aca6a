"""OpenAI Agents SDK: agents with handoffs and agents as tools (docs/wrapping-openai-agents.md).

- `runner`: replaces the SDK's default runner, which `Runner` asks for each run; the agents of a
  team.
- `run`: one run, from its call to its result, and what its agents ask others.
- `messages`: what a model's response says, and to which agent it hands over; the state of a team,
  with the runs that wait for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dig.adapters.base import Attached, Session, WrapPlan, importing

__all__ = ["plan"]

VERSIONS = ("0.23.1", "0.25")
"""The lowest version of the SDK that this was tested with, and the first that it was not."""

CAN = frozenset({
    "annotate", "tell", "hold", "bounce", "stop", "meter", "hand_back", "sample",
})  # fmt: skip


def plan(
    team: Any,
    *,
    annotate: Callable[[list[Any], tuple[str, ...]], Sequence[Any]] | None = None,
    tools: bool = False,
) -> WrapPlan:
    """Plan the wrapping of an agent and all agents in reach; refuse other teams.

    Args:
        team: An agent, from which the others are reached by handoffs and as tools.
        annotate: Puts notes into what a model is given: `(input items, notes) -> input items`; by
            default a message of the user at the end.
        tools: Whether function tools are agents `tool:NAME`, so that their calls are events.

    Raises:
        SettingsError: The team is no agent, or the SDK is not one that was tested.
    """
    with importing("Agents SDK", ("openai-agents",), VERSIONS, extra="openai-agents"):
        from . import runner
        from .messages import AgentTeam, as_messages
    agents = runner.of(team)

    def attach(session: Session) -> Attached:
        wrapped = AgentTeam(session, team, agents, annotate or as_messages, tools)
        runner.install(wrapped)
        return Attached(team, partial(runner.remove, wrapped))

    return WrapPlan("a team of OpenAI agents", tuple(agents), attach, CAN)
