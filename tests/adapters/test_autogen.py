"""AutoGen, wrapped: nothing changes for a host; replacements look like the originals."""

from __future__ import annotations

import pytest
from autogen_agentchat.base import TerminationCondition

from dig.adapters.autogen.group import BounceableTermination

from .autogen_runtimes import RUNTIMES
from .autogen_teams import SCENARIOS, Watched
from .conformance import LooksAlike, Recorded, Unchanged
from .framework_signatures import Pair

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")


class TestUnchanged(Unchanged):
    watched, scenarios = Watched, [*SCENARIOS, *RUNTIMES]


class TestLooksAlike(LooksAlike):
    watched, scenarios = Watched, [*SCENARIOS, *RUNTIMES]

    def others(self) -> list[Pair]:
        """The condition of a manager, which is an object."""
        return [Pair(TerminationCondition.__call__, BounceableTermination.__call__)]


class TestRecorded(Recorded):
    watched, scenarios, package = Watched, [*SCENARIOS, *RUNTIMES], "autogen-core"
