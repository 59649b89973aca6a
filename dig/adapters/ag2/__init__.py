"""AG2 1.x: the agents of a hub (docs/wrapping-autogen.md).

- `hub`: patches the hub's methods and the agent's message handler; shows notes to its model.
- `team`: which event is in front of which agent, and which turns are open.
- `routes`: the agents that act on a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dig.adapters.base import Attached, Session, WrapPlan, importing, need_attributes
from dig.errors import SettingsError

__all__ = ["plan"]

VERSIONS = ("1.1.2", "1.3")
"""The lowest version of AG2 that this was tested with, and the first that it was not."""

HUB = ("_channels", "_passports", "_dispatch", "_endpoint_for", "_owned_clients")
CLIENT = ("_run_default_handler", "_suppress_handler")


def plan(team: Any, *, handoff: Callable[[Mapping[str, Any]], bool] | None = None) -> WrapPlan:
    """Plan the wrapping of a hub; refuse other teams.

    Args:
        team: A `ag2.network.Hub`; agents may be registered with it before and after.
        handoff: Whether a packet (its `event_data`) that hands over to another agent passes on
            what the sender was given, instead of saying something; by default, if its body is
            empty.

    Raises:
        SettingsError: The team is no hub, or AG2 is not one that was tested.
    """
    with importing("AG2", ("ag2",), VERSIONS, extra="ag2"):
        from ag2.network import AgentClient, Hub

        from . import hub as patches
        from .routes import is_handoff, is_here
        from .team import HubTeam
    if not isinstance(team, Hub):
        kind = type(team).__name__
        raise SettingsError(f"{kind} is no hub; wrap the Hub that its agents are registered with")
    need_attributes("AG2", (team,), HUB)
    need_attributes("AG2", (AgentClient,), CLIENT)
    agents = tuple(name for name, id in team.name_to_id_map().items() if is_here(team, id))

    attached: list[patches.HubPatches] = []

    def attach(session: Session) -> Attached:
        attached.append(patches.attach(team, HubTeam(team, session, handoff or is_handoff)))
        return Attached(team, attached[0].restore)

    def wake(name: str, note: str) -> None:
        attached[0].wake(name)

    can = frozenset({"annotate", "tell", "wake", "hold", "bounce", "stop", "meter", "hand_back"})
    return WrapPlan("an AG2 hub", agents, attach, can, on_note=wake)
