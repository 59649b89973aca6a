"""OpenAI Agents SDK: agents with handoffs and agents as tools (docs/wrapping-openai-agents.md).

- `runner`: stands where `Runner` has its work done, and knows which runs belong to a wrapped team.
- `run`: one run, from its call to its result; `again`: once more. `asking`: what agents ask others.
- `talk`: what a model's response says, and to whom it hands over.
- `taps`: where a run is told of handoffs and responses, and where notes get to a model.
- `members`: the agents of a team, found from one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dig.adapters import Attached, Plan, Session, need_version
from dig.errors import SettingsError

__all__ = ["plan"]

VERSIONS = ("0.24.0", "0.25")
"""The lowest version of the SDK that this was tested with, and the first that it was not."""

CAN = frozenset({"annotate", "tell", "hold", "bounce"})


def plan(
    team: Any,
    *,
    annotate: Callable[[list[Any], tuple[str, ...]], Sequence[Any]] | None = None,
) -> Plan:
    """Look at an agent and those that it can reach, and refuse what cannot be wrapped.

    Args:
        team: An agent, from which the others are reached by handoffs and as tools.
        annotate: Puts notes into what a model is given: `(input items, notes) -> input items`; by
            default a message of the user at the end.

    Raises:
        SettingsError: It is no agent, two are called the same, or the SDK is not one that was
            tested.
    """
    need_version("openai-agents", *VERSIONS, extra="openai-agents")
    try:
        from . import members, runner, taps
    except ImportError as error:
        raise SettingsError(f"this Agents SDK is put together in another way: {error}") from error
    found = members.of(team)

    def attach(session: Session) -> Attached:
        wrapped = runner.Team(session, team, tuple(found), annotate or taps.as_message)
        runner.install(wrapped)
        return Attached(team, partial(_restore, wrapped, team))

    return Plan("a team of OpenAI agents", tuple(agent.name for agent in found), attach, CAN)


def _restore(wrapped: Any, team: Any) -> Any:
    from .runner import remove

    remove(wrapped)
    return team
