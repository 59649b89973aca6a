"""LangGraph, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")


from .harness import Scenario, cancelled_everywhere, play
from .langgraph_asked import SCENARIOS
from .langgraph_watch import Watched


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_who_only_observes_changes_nothing_that_a_host_can_see(scenario: Scenario) -> None:
    for seed in range(3):
        watched = Watched()
        assert play(scenario, watched, seed=seed) == play(scenario, seed=seed)
        assert watched.leaves_nothing_open()
        assert watched.session.statistics().requests >= 1


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_where_nothing_is_found_healing_changes_nothing_either(scenario: Scenario) -> None:
    watched = Watched("heal")
    assert play(scenario, watched) == play(scenario)
    assert watched.leaves_nothing_open()


CANCELLED = [
    "chain-ask",
    "fan-ask",
    "send-ask",
    "two_teams-ask",
    "asking-answer_back",
    "fan-updates",
]


@pytest.mark.parametrize(
    "scenario", [one for one in SCENARIOS if one.name in CANCELLED], ids=str
)  # fmt: skip
def test_a_request_may_be_cancelled_at_every_await(scenario: Scenario) -> None:
    watched = Watched()
    for step, bare, mine in cancelled_everywhere(scenario, watched):
        assert mine == bare, f"cancelled before step {step}"
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"
