"""AG2, wrapped: nothing changes for a host; replacements look like the originals."""

from __future__ import annotations

from typing import Any

from ag2.network import AgentClient

from dig.adapters.ag2 import hub

from .ag2_teams import SCENARIOS, Watched
from .conformance import LooksAlike, Recorded, Unchanged
from .framework_signatures import Pair


class TestUnchanged(Unchanged):
    watched, scenarios = Watched, SCENARIOS
    cancelled = tuple(  # each takes a while
        one
        for one in SCENARIOS
        if one.name in ("between_agents", "consulting", "delegating", "failing")
    )
    cancelled_in = "heal"

    def is_over(self, watched: Any) -> bool:
        """What lies in an agent's queue when the hub is closed is lost, and stays open."""
        seen = watched.session.statistics()
        is_quiet = (seen.open_turns, seen.faults, seen.missed) == (0, 0, 0)
        return is_quiet and not watched.session.monitor.graph.activations


class TestLooksAlike(LooksAlike):
    watched, scenarios = Watched, SCENARIOS

    def others(self) -> list[Pair]:
        """The method of the class, which all hubs share."""
        return [Pair(AgentClient.receive, hub._receive_patched)]


class TestRecorded(Recorded):
    watched, scenarios, package = Watched, SCENARIOS, "ag2"
