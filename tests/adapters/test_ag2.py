"""AG2, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip("ag2", reason="AG2 is not installed: pip install .[dev,ag2]")


from .ag2_teams import SCENARIOS
from .ag2_watch import Watched
from .harness import Scenario, cancelled_everywhere, play


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
    assert play(scenario, watched) == play(scenario)
    watched.must_be_sound()


CANCELLED = ["between_agents", "consulting", "delegating", "failing"]  # each takes a while


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one.name in CANCELLED], ids=str)
def test_a_request_may_be_cancelled_at_every_await(scenario: Scenario) -> None:
    watched = Watched("heal")
    for step, bare, mine in cancelled_everywhere(scenario, watched):
        assert mine == bare, f"cancelled before step {step}"
        # What lies in an agent's queue when the hub is closed is lost, and stays open.
        seen = watched.session.statistics()
        assert (seen.open_turns, seen.faults, seen.missed) == (0, 0, 0)
        assert not watched.session.monitor.graph.activations
        watched.detach()
