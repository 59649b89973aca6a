"""AG2 classic (`ag2<1`, `import autogen`): chats and group chats (docs/wrapping-ag2-classic.md).

- `taps`: what stands in place of the methods of an agent that chats go through.
- `scripts`: what happens around one call of such a method, awaited or not; `play` carries it out.
- `chat`: what a session is told of a chat: who has the floor, and what was said last.
- `members`: the agents of a team. `talk`: what they say. `notes`: what is shown to their models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dig.adapters import Attached, Plan, Session, need_version
from dig.errors import SettingsError

__all__ = ["plan"]

VERSIONS = ("0.14.0", "0.15")
"""The lowest version of AG2 classic that this was tested with, and the first that it was not."""

CAN = frozenset({"annotate", "tell", "hold", "bounce"})


def plan(team: Any, *, handoff: Callable[[Mapping[str, Any]], bool] | None = None) -> Plan:
    """Look at a team, and refuse what cannot be wrapped.

    Args:
        team: A `GroupChatManager`, a pattern of a group chat, or an agent that begins chats: whom
            it talks to is known from then on.
        handoff: Whether a message that an agent sends passes on what it was given, instead of
            saying something; by default, if it does nothing but call the handoffs of a group.

    Raises:
        SettingsError: It is no such team, two agents are called the same, or AG2 is not one
            that was tested.
    """
    need_version("ag2", *VERSIONS, extra="ag2-classic")
    try:
        from . import agents as taps
        from . import members
    except ImportError as error:
        raise SettingsError(f"this AG2 is put together in another way: {error}") from error
    found = members.of(team)

    def attach(session: Session) -> Attached:
        tapped = taps.ChatTaps(session, handoff)
        try:
            for agent in found:
                tapped.know(agent)
            if members.is_pattern(team):
                tapped.follow(team)
        except Exception as error:  # an agent of the user's own kind may refuse
            tapped.restore()
            raise SettingsError(f"an agent of this team cannot be watched: {error!r}") from error

        def restore() -> Any:
            tapped.restore()
            return team

        return Attached(team, restore)

    names = tuple(agent.name for agent in found if members.is_agent(agent))
    return Plan("a team of AG2 classic", names, attach, CAN)
