"""Teams on several machines: sessions on NATS JetStream, with a hold for all messages.

- `names`, `envelopes`, `streams`: what stands on the server. `connection`: how it is reached.
- `session`: a session's monitor without a network. `owner`: the loop around it. `takeover`: how a
  process becomes the owner; `ownership`: its lease. `serving`: one or many sessions.
- `agent`: agents in a process of their own. `client`: problems and answers.
- `pull`: journals as run directories. `server`: an embedded server.

Everything here runs on asyncio, since nats-py does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dig.errors import SettingsError

if TYPE_CHECKING:
    from dig.runtime.agents import Agent, AgentFunction


def need_nats() -> None:
    """Check that nats-py is installed.

    Raises:
        SettingsError: There is none.
    """
    try:
        import nats  # noqa: F401
    except ImportError:
        raise SettingsError(
            "teams on several machines need nats-py: pip install 'dig-monitor[nats]'"
        ) from None


async def join(
    session: str, agents: Mapping[str, Agent | AgentFunction], *, nats: str,
    credentials: str | None = None, beat_s: float = 2.0,
) -> None:  # fmt: skip
    """Serve agents of a session in this process, until cancellation.

    Args:
        session: The session's name.
        agents: The agents by name: objects with `act`, or functions from a view to a decision.
        nats: The address of the server.
        credentials: The path of a file with credentials.
        beat_s: Seconds between two heartbeats.

    Raises:
        SettingsError: No server answers there, or a member of `agents` is no agent.
    """
    need_nats()
    from .agent import serve_agents

    await serve_agents(session, agents, nats=nats, credentials=credentials, beat_s=beat_s)
