"""Microsoft agent-framework, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "agent_framework", reason="agent-framework is not installed: pip install .[dev,agent-framework]"
)


from .agent_framework_asked import SCENARIOS
from .agent_framework_watch import Watched
from .harness import Scenario, cancelled_everywhere, play


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_who_only_observes_changes_nothing_that_a_host_can_see(scenario: Scenario) -> None:
    for seed in range(3):
        watched, bare = Watched(), play(scenario, seed=seed)
        mine = play(scenario, watched, seed=seed)
        assert mine == bare
        assert mine.steps == bare.steps, "wrapping has added a step of the event loop"
        assert watched.session.statistics().requests >= 1
        watched.must_be_sound()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_where_nothing_is_found_healing_changes_nothing_either(scenario: Scenario) -> None:
    watched = Watched("heal")
    mine = play(scenario, watched)
    watched.must_be_sound()
    if not watched.healed():
        assert mine == play(scenario)


CANCELLED = ["fan-ask", "several_at_once-ask", "asking-answer_back", "talking-stream"]


@pytest.mark.parametrize(
    "scenario", [one for one in SCENARIOS if one.name in CANCELLED], ids=str
)  # fmt: skip
def test_a_request_may_be_cancelled_at_every_await(scenario: Scenario) -> None:
    watched = Watched()
    for step, bare, mine in cancelled_everywhere(scenario, watched):
        assert mine == bare, f"cancelled before step {step}"
        watched.detach()
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"
