"""Microsoft agent-framework, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "agent_framework", reason="agent-framework is not installed: pip install .[dev,agent-framework]"
)

from .agent_framework_asked import SCENARIOS
from .agent_framework_teams import Watched
from .conformance import Recorded, Unchanged


class TestUnchanged(Unchanged):
    watched, scenarios = Watched, SCENARIOS
    cancelled = tuple(
        one
        for one in SCENARIOS
        if one.name in ("fan-ask", "several_at_once-ask", "asking-answer_back", "talking-stream")
    )
    adds_no_step = True
    may_be_healed = True


class TestRecorded(Recorded):
    watched, scenarios, package = Watched, SCENARIOS, "agent-framework-core"
