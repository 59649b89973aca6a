"""Google ADK: agents with transfers, agents as tools, and workflows (docs/wrapping-google-adk.md).

- `runs`: the runs of a `Runner`, and those of the agents inside, each with a plugin.
- `words`: the agents of a team, and their words.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dig.adapters.base import HOOKED, Attached, Session, WrapPlan, importing

__all__ = ["plan"]

VERSIONS = ("2.0.0", "2.14")
"""The lowest version that this was tested with, and the first that it was not."""


def plan(team: Any, *, tools: bool = False) -> WrapPlan:
    """Plan the wrapping of an agent, a workflow, an app or a runner; refuse other teams.

    Args:
        team: The team, with all agents in its reach.
        tools: Whether function tools are agents `tool:NAME`, so that their calls are events.

    Raises:
        SettingsError: The team is something else, or ADK is not one that was tested.
    """
    with importing("Google ADK", ("google-adk",), VERSIONS, extra="google-adk"):
        from . import runs
        from .words import nodes_of, reporters
    nodes = nodes_of(team)

    def attach(session: Session) -> Attached:
        watched = runs.WatchedTeam(session, nodes, tools)
        runs.install(watched)
        return Attached(team, partial(runs.remove, watched))

    return WrapPlan("a team of Google ADK", reporters(nodes), attach, HOOKED)
