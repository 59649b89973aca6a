"""AutoGen 0.7: AgentChat teams and core runtimes (docs/wrapping-autogen.md).

- `group`: the patches of a team, and when it ends. `chat`: what a session is told of a team: which
  agent has the floor; messages as plain JSON.
- `runtime`: the patches of a runtime. `messages`: what is on its way in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dig.adapters.base import Deliver, WrapPlan, importing
from dig.errors import SettingsError

__all__ = ["plan"]

VERSIONS = ("0.7.1", "0.8")
"""The lowest version of AutoGen that this was tested with, and the first that it was not."""


def plan(
    team: Any,
    *,
    handoff: Callable[[Any], bool] | None = None,
    outside: Iterable[str] = (),
    allow: Iterable[str] = (),
    annotate: Callable[[Any, tuple[str, ...]], Any] | None = None,
    deliver: Deliver | None = None,
    tools: bool = False,
) -> WrapPlan:
    """Plan the wrapping of a team or a runtime; refuse other objects.

    Args:
        team: A team of AgentChat, such as a `RoundRobinGroupChat`; or a
            `SingleThreadedAgentRuntime`.
        handoff: Of a team: whether a `HandoffMessage` passes on what its sender was given, instead
            of saying something; by default, if it has no context, and no words of its own.
        outside: Of a runtime: the types of agents that count as the outside, such as a
            `ClosureAgent` that collects results. What they get is an answer.
        allow: Of a runtime: `bounce`, that an agent whose answer was early handles its message
            once more. Of a team: `reassign`, that a participant that does not come back is
            cancelled, and another one is asked to speak in its place.
        annotate: Of a runtime: puts notes into a message, `(message, notes) -> message`; by default
            only `dig.notes()` has them.
        deliver: Told of what healing says to an agent (its name, and a note) at once; runs on the
            loop of the latest request.
        tools: Of a team: whether tools are agents `tool:NAME`, so that their calls are events.

    Raises:
        SettingsError: The team is neither, an option is for the other kind, or AutoGen is not one
            that was tested.
    """
    with importing("AutoGen", ("autogen-core", "autogen-agentchat"), VERSIONS, extra="autogen"):
        from autogen_agentchat.teams import BaseGroupChat
        from autogen_core import SingleThreadedAgentRuntime

        from . import group, runtime
    if isinstance(team, SingleThreadedAgentRuntime):
        _refuse("teams", handoff=handoff, tools=tools)
        return runtime.plan(team, outside, allow, annotate, deliver)
    if isinstance(team, BaseGroupChat):
        _refuse("runtimes", outside=outside, annotate=annotate)
        return group.plan(team, handoff, deliver, allow, tools=tools)
    kind = type(team).__name__
    raise SettingsError(f"{kind} is no team or runtime; wrap the team or runtime that it is in")


def _refuse(kind: str, **options: Any) -> None:
    for name, value in options.items():
        if value:
            raise SettingsError(f"{name}= is for {kind}, and this is none of them")
