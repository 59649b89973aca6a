"""AG2, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ag2", reason="AG2 is not installed: pip install .[dev,ag2]")

from .ag2_teams import SCENARIOS, Watched
from .conformance import Recorded, Unchanged


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


class TestRecorded(Recorded):
    watched, scenarios, package = Watched, SCENARIOS, "ag2"
