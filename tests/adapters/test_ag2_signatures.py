"""AG2 1.x, wrapped: what stands in place of its functions looks like them, and is called so."""

from __future__ import annotations

import pytest

pytest.importorskip("ag2", reason="AG2 is not installed: pip install .[dev,ag2]")

from ag2.network import AgentClient

from dig.adapters.ag2 import hub

from .ag2_teams import SCENARIOS, Watched
from .conformance import LooksAlike
from .framework_signatures import Pair


class TestLooksAlike(LooksAlike):
    watched, scenarios = Watched, SCENARIOS

    def others(self) -> list[Pair]:
        """The method of the class, which all hubs share."""
        return [Pair(AgentClient.receive, hub._received)]
