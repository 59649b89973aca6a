"""AG2 1.x: the agents that are registered with a hub (docs/wrapping-ag2.md).

- `taps`: what stands in place of the hub's methods, and of what receives for an agent.
- `team`: what is in front of whom, and who works on what. `routes`: who is to act on a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dig.adapters import Attached, Plan, Session, need_version
from dig.errors import SettingsError

__all__ = ["plan"]

VERSIONS = ("1.2.1", "1.3")
"""The lowest version of AG2 that this was tested with, and the first that it was not."""

HUB = ("_channels", "_passports", "_dispatch", "_endpoint_for", "_owned_clients")
CLIENT = ("_run_default_handler", "_suppress_handler")


def plan(team: Any, *, handoff: Callable[[Mapping[str, Any]], bool] | None = None) -> Plan:
    """Look at a hub, and refuse what cannot be wrapped.

    Args:
        team: A `ag2.network.Hub`; agents may be registered with it before and after.
        handoff: Whether a packet (its `event_data`) that hands over to another agent passes on
            what the sender was given, instead of saying something; by default, if its body is
            empty.

    Raises:
        SettingsError: It is no hub, or AG2 is not one that was tested.
    """
    need_version("ag2", *VERSIONS, extra="ag2")
    try:
        from ag2.network import AgentClient, Hub

        from . import hub as taps
        from .routes import is_handoff, is_here
        from .team import Team
    except ImportError as error:
        raise SettingsError(f"this AG2 is put together in another way: {error}") from error
    if not isinstance(team, Hub):
        kind = type(team).__name__
        raise SettingsError(f"{kind} is no hub; wrap the Hub that its agents are registered with")
    missing = [name for name in HUB if not hasattr(team, name)]
    missing += [name for name in CLIENT if not hasattr(AgentClient, name)]
    if missing:
        raise SettingsError(f"this AG2 is put together in another way: no {', '.join(missing)}")
    agents = tuple(name for name, id in team.name_to_id_map().items() if is_here(team, id))

    attached: list[taps.HubTaps] = []

    def attach(session: Session) -> Attached:
        attached.append(taps.attach(team, Team(team, session, handoff or is_handoff)))
        return Attached(team, attached[0].restore)

    def wake(name: str, note: str) -> None:
        attached[0].wake(name)

    can = frozenset({"annotate", "tell", "wake", "hold", "bounce"})
    return Plan("an AG2 hub", agents, attach, can, on_note=wake)
