"""AG2 classic, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")

from .ag2_classic_asked import SCENARIOS, in_group_now
from .ag2_classic_teams import Watched, Wrapping, scenario
from .conformance import Recorded, Unchanged
from .test_ag2_classic_healing import ping_pong


class TestUnchanged(Unchanged):
    watched, scenarios = Watched, SCENARIOS
    cancelled = tuple(one for one in SCENARIOS if "_now" not in str(one))
    cancelled_in = "heal"

    def wrap(self, watched: Any) -> Wrapping:
        return Wrapping(watched)


class TestRecorded(Recorded):
    watched, scenarios, package = Watched, [*SCENARIOS, scenario(ping_pong, in_group_now)], "ag2"

    def wrap(self, watched: Any) -> Wrapping:
        return Wrapping(watched)
