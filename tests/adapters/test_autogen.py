"""AutoGen, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "autogen_agentchat", reason="AutoGen is not installed: pip install .[dev,autogen]"
)

from .autogen_runtimes import RUNTIMES
from .autogen_teams import SCENARIOS, Watched
from .conformance import Recorded, Unchanged

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")


class TestUnchanged(Unchanged):
    watched, scenarios = Watched, [*SCENARIOS, *RUNTIMES]


class TestRecorded(Recorded):
    watched, scenarios, package = Watched, [*SCENARIOS, *RUNTIMES], "autogen-core"
