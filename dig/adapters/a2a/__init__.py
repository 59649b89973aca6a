"""A2A: clients of remote agents, and executors of served agents (docs/wrapping-a2a.md).

- `words`: the contents of messages and tasks, and how a task ends.
- `calls`: a message to an agent until its answer, on either side.
- `team`: the members of a team, and their methods that are replaced.
"""

from __future__ import annotations

from typing import Any

from dig.adapters.base import HOOKED, Attached, Session, WrapPlan, importing

__all__ = ["plan"]

VERSIONS = ("1.1.0", "1.4")
"""The lowest version of the SDK that this was tested with, and the first that it was not."""

CLIENT_LACKS = {"bounce", "meter", "hand_back"}
"""The capabilities of no team without an executor, which can be called again."""


def plan(team: Any) -> WrapPlan:
    """Plan the wrapping of clients and executors; refuse other teams.

    Args:
        team: A client, an executor or its request handler, or several of them, by name or as a
            list.

    Raises:
        SettingsError: A member is something else, or the SDK is not one that was tested.
    """
    with importing("A2A SDK", ("a2a-sdk",), VERSIONS, extra="a2a"):
        from .team import WatchedMembers, members_of
    members = members_of(team)

    def attach(session: Session) -> Attached:
        return Attached(team, WatchedMembers(session, members).restore)

    can = HOOKED if any(member.is_served for member in members) else HOOKED - CLIENT_LACKS
    names = tuple(dict.fromkeys(member.name for member in members))
    return WrapPlan("a team of A2A agents", names, attach, can)
