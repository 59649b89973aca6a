"""AutoGen, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "autogen_agentchat", reason="AutoGen is not installed: pip install .[dev,autogen]"
)


from .autogen_runtimes import RUNTIMES
from .autogen_teams import SCENARIOS
from .autogen_watch import Watched
from .harness import Scenario, play

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")


@pytest.mark.parametrize("scenario", [*SCENARIOS, *RUNTIMES], ids=str)
def test_who_only_observes_changes_nothing_that_a_host_can_see(scenario: Scenario) -> None:
    for seed in range(3):
        watched = Watched()
        assert play(scenario, watched, seed=seed) == play(scenario, seed=seed)
        assert watched.leaves_nothing_open()
        watched.must_be_sound()
        assert watched.session.statistics().requests >= 1


@pytest.mark.parametrize("scenario", [*SCENARIOS, *RUNTIMES], ids=str)
def test_where_nothing_is_found_healing_changes_nothing_either(scenario: Scenario) -> None:
    watched = Watched("heal")
    assert play(scenario, watched) == play(scenario)
    assert watched.leaves_nothing_open()
    watched.must_be_sound()
