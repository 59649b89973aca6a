"""AG2 classic (`ag2<1`, `import autogen`): chats and group chats (docs/wrapping-ag2-classic.md).

- `agents`: the agents of a team, and the patches of the methods that their chats go through.
- `scripts`: what happens around one call of such a method, awaited or not.
- `chat`: what a session is told of a chat: which agent has the floor, and what was said last;
  messages as payloads, and the notes that are shown to models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dig.adapters.base import Attached, Session, WrapPlan, importing
from dig.errors import SettingsError

__all__ = ["plan"]

VERSIONS = ("0.13.4", "0.15")
"""The lowest version of AG2 classic that this was tested with, and the first that it was not."""

CAN = frozenset({"annotate", "tell", "hold", "bounce"})


def plan(team: Any, *, handoff: Callable[[Mapping[str, Any]], bool] | None = None) -> WrapPlan:
    """Look at a team, and refuse what cannot be wrapped.

    Args:
        team: A `GroupChatManager`, a pattern of a group chat, or an agent that begins chats: whom
            it talks to is known from then on.
        handoff: Whether a message that an agent sends passes on what it was given, instead of
            saying something; by default, if it does nothing but call the handoffs of a group.

    Raises:
        SettingsError: The object is no team of AG2 classic, two agents are called the same, or AG2
            is not one that was tested.
    """
    with importing("AG2", ("ag2",), VERSIONS, extra="ag2-classic"):
        from . import agents
        from .chat import is_agent
    found = agents.of(team)

    def attach(session: Session) -> Attached:
        patches = agents.AgentPatches(session, handoff)
        try:
            for agent in found:
                patches.know(agent)
            if agents.is_pattern(team):
                patches.follow(team)
        except Exception as error:  # an agent of the user's own kind may refuse
            patches.restore()
            raise SettingsError(f"an agent of this team cannot be watched: {error!r}") from error
        return Attached(team, patches.restore)

    names = tuple(agent.name for agent in found if is_agent(agent))
    return WrapPlan("a team of AG2 classic", names, attach, CAN)
