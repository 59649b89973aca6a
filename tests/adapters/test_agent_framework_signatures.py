"""agent-framework, wrapped: what stands in place of its functions looks like them."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "agent_framework", reason="agent-framework is not installed: pip install .[dev,agent-framework]"
)

from .agent_framework_asked import SCENARIOS
from .agent_framework_teams import Watched
from .conformance import LooksAlike


class TestLooksAlike(LooksAlike):
    watched, scenarios = Watched, SCENARIOS
