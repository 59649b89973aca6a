"""Teams on several machines: sessions on NATS JetStream, with a hold for all messages.

- `names`, `envelopes`, `streams`: what stands on the server. `connection`: how it is reached.
- `session`: a session's monitor without a network. `owner`: the loop around it. `takeover`: how a
  process becomes the owner; `ownership`: its lease. `serving`: one or many sessions. `figures`:
  what an owner measures.
- `agent`: agents in a process of their own; `calls`: plain functions as agents; `over_a2a`: clients
  and executors of the A2A SDK. `contexts`: what OpenTelemetry has current. `client`: problems and
  answers.
- `pull`: journals as run directories; `sent_journal`: those of wrapped teams. `embedded`: a server.

Everything here runs on asyncio, since nats-py does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dig._util.extras import importing_extra

if TYPE_CHECKING:
    from dig.runtime.agents import Agent

    from .agent import Membership


def need_nats() -> None:
    """Check that nats-py is installed.

    Raises:
        SettingsError: There is none.
    """
    with importing_extra("nats", "a team on several machines"):
        import nats  # noqa: F401


def join(
    session: str, agents: Mapping[str, Agent | Callable[..., Any]], *, nats: str,
    credentials: str | None = None, beat_s: float = 2.0,
) -> Membership:  # fmt: skip
    """Serve agents of a session in this process: `await` it, or enter it with `async with`.

    Args:
        session: The session's name.
        agents: The agents by name: objects with `act`, functions from a view to a decision, plain
            async functions of one argument, or clients and executors of the A2A SDK.
        nats: The address of the server.
        credentials: The path of a file with credentials.
        beat_s: Seconds between two heartbeats.

    Returns:
        The membership. `await` serves until cancellation; `async with` yields the agents of the
        session as functions: `await team["bob"](x)`.

    Raises:
        SettingsError: nats-py is missing, or a member of `agents` is no agent.
    """
    need_nats()
    from .agent import Membership

    return Membership(session, agents, nats, credentials, beat_s)
