"""AutoGen, wrapped: what stands in place of its functions looks like them, and is called so."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "autogen_agentchat", reason="AutoGen is not installed: pip install .[dev,autogen]"
)

from autogen_agentchat.base import TerminationCondition

from dig.adapters.autogen.group import BounceableTermination

from .autogen_runtimes import RUNTIMES
from .autogen_teams import SCENARIOS, Watched
from .conformance import LooksAlike
from .framework_signatures import Pair

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")


class TestLooksAlike(LooksAlike):
    watched, scenarios = Watched, [*SCENARIOS, *RUNTIMES]

    def others(self) -> list[Pair]:
        """The condition of a manager, which is an object."""
        return [Pair(TerminationCondition.__call__, BounceableTermination.__call__)]
