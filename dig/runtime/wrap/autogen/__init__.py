"""AutoGen 0.7: AgentChat teams and core runtimes (docs/wrapping-autogen.md).

- `group`: the taps of a team; `chat`: what a session is told of it. `ending`: when it ends, and
  how it goes on after all. `said`: messages as plain JSON.
- `core`: the taps of a runtime; `post`: what is on its way in it.
- `taps`: standing in place of methods, and taking that back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dig.errors import SettingsError
from dig.runtime.wrap import Attached, Plan, Session, need_version
from dig.runtime.wrap.holding import OnLoop

__all__ = ["plan"]

VERSIONS = ("0.7.5", "0.8")
"""The lowest version of AutoGen that this was tested with, and the first that it was not."""

RUNTIME = ("_get_agent", "_instantiated_agents")
TEAM = (
    "_runtime", "_participants", "_participant_names", "_participant_topic_types", "_team_id",
    "_group_chat_manager_topic_type",
)  # fmt: skip

Deliver = Callable[[str, str], object]


def plan(
    team: Any,
    *,
    handoff: Callable[[Any], bool] | None = None,
    deliver: Deliver | None = None,
) -> Plan:
    """Look at a team or a runtime, and refuse what cannot be wrapped.

    Args:
        team: A team of AgentChat, such as `RoundRobinGroupChat`.
        handoff: Whether a `HandoffMessage` passes on what its sender was given, instead of saying
            something; by default, if it has no context.
        deliver: Told of what healing says to an agent (its name, and a note) at once; runs on the
            loop of the latest request.

    Raises:
        SettingsError: It is neither, or AutoGen is not one that was tested.
    """
    for package in ("autogen-core", "autogen-agentchat"):
        need_version(package, *VERSIONS, extra="autogen")
    try:
        from autogen_agentchat.teams import BaseGroupChat
        from autogen_core import SingleThreadedAgentRuntime

        from .chat import Chat
        from .group import Group
        from .said import is_handoff
        from .taps import Taps
    except ImportError as error:
        raise SettingsError(f"this AutoGen is put together in another way: {error}") from error
    if not isinstance(team, BaseGroupChat):
        raise SettingsError(f"{type(team).__name__} is no team; wrap a RoundRobinGroupChat, say")
    _must_have(team, TEAM)
    if not isinstance(team._runtime, SingleThreadedAgentRuntime):
        kind = type(team._runtime).__name__
        raise SettingsError(f"this team runs on a {kind}; only SingleThreadedAgentRuntime will do")
    _must_have(team._runtime, RUNTIME)
    loop = OnLoop()

    def attach(session: Session) -> Attached:
        chat = Chat(session, team, handoff or is_handoff)
        return Attached(team, Group(team, chat, Taps(), loop).restore)

    can = {"annotate", "tell", "hold", "bounce"} | ({"wake"} if deliver else set())
    bring = partial(_bring, loop, deliver) if deliver else None
    agents = tuple(team._participant_names)
    return Plan("an AutoGen team", agents, attach, frozenset(can), on_note=bring)


def _bring(loop: OnLoop, deliver: Deliver, agent: str, note: str) -> None:
    loop.run(partial(deliver, agent, note))


def _must_have(owner: Any, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        what = ", ".join(missing)
        raise SettingsError(f"this AutoGen is put together in another way: no {what}")
