"""Microsoft agent-framework, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "agent_framework", reason="agent-framework is not installed: pip install .[dev,agent-framework]"
)


from .agent_framework_teams import SCENARIOS
from .agent_framework_watch import Watched
from .harness import Scenario, play


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_who_only_observes_changes_nothing_that_a_host_can_see(scenario: Scenario) -> None:
    for seed in range(3):
        watched = Watched()
        assert play(scenario, watched, seed=seed) == play(scenario, seed=seed)
        watched.must_be_sound()
        assert watched.session.statistics().requests >= 1


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_where_nothing_is_found_healing_changes_nothing_either(scenario: Scenario) -> None:
    watched = Watched("heal")
    mine = play(scenario, watched)
    watched.must_be_sound()
    if not watched.healed():
        assert mine == play(scenario)
