"""Microsoft agent-framework, wrapped: nothing changes for a host; replacements look alike."""

from __future__ import annotations

from .agent_framework_asked import SCENARIOS
from .agent_framework_teams import Watched
from .conformance import LooksAlike, Recorded, Unchanged


class TestUnchanged(Unchanged):
    watched, scenarios = Watched, SCENARIOS
    cancelled = tuple(
        one
        for one in SCENARIOS
        if one.name in ("fan-ask", "several_at_once-ask", "asking-answer_back", "talking-stream")
    )
    adds_no_step = True
    may_be_healed = True


class TestLooksAlike(LooksAlike):
    watched, scenarios = Watched, SCENARIOS


class TestRecorded(Recorded):
    watched, scenarios, package = Watched, SCENARIOS, "agent-framework-core"
