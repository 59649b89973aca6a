"""OpenAI agents, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip("agents.testing", reason="not installed: pip install .[dev,openai-agents]")


from dig.detectors import standard
from dig.runtime.host import Setup

from .harness import Scenario, cancelled_everywhere, play
from .openai_agents_asked import SCENARIOS
from .openai_agents_teams import CANCELLED, Watched


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_who_only_observes_changes_nothing_that_a_host_can_see(scenario: Scenario) -> None:
    for seed in range(3):
        watched = Watched()
        bare = play(scenario, seed=seed)
        mine = play(scenario, watched, seed=seed)
        assert mine == bare
        assert mine.steps == bare.steps, "wrapping has added a step of the event loop"
        assert watched.leaves_nothing_open()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_where_nothing_is_found_healing_changes_nothing_either(scenario: Scenario) -> None:
    watched = Watched("heal", Setup(detectors=standard))
    assert play(scenario, watched) == play(scenario)
    assert watched.leaves_nothing_open()


CALLS = [
    "chain-ask",
    "tool_and_handoff-ask",
    "tool_and_handoff-stream",
    "in_code-ask",
    "alone-talk",
]


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one.name in CALLS], ids=str)
@CANCELLED[0]
@CANCELLED[1]
def test_a_request_may_be_cancelled_at_every_await(scenario: Scenario) -> None:
    watched = Watched()
    for step, bare, mine in cancelled_everywhere(scenario, watched):
        assert mine == bare, f"cancelled before step {step}"
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"
