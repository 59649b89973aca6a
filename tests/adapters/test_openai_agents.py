"""OpenAI agents, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

from dig.detectors import standard
from dig.runtime.host import Setup

from .conformance import Recorded, Unchanged
from .openai_agents_asked import SCENARIOS
from .openai_agents_teams import CANCELLED, Watched


class TestUnchanged(Unchanged):
    watched, scenarios = Watched, SCENARIOS
    healing = Setup(detectors=standard)
    adds_no_step = True
    cancelled = tuple(
        one
        for one in SCENARIOS
        if one.name
        in (
            "chain-ask", "tool_and_handoff-ask", "tool_and_handoff-stream", "in_code-ask",
            "alone-talk",
        )
    )  # fmt: skip
    test_a_request_may_be_cancelled_at_every_await = CANCELLED[0](
        CANCELLED[1](Unchanged.test_a_request_may_be_cancelled_at_every_await)
    )


class TestRecorded(Recorded):
    watched, scenarios, package = Watched, SCENARIOS, "openai-agents"
