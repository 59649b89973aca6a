"""AG2 classic, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")


from .ag2_classic_asked import SCENARIOS
from .ag2_classic_teams import Watched, Wrapping
from .harness import Scenario, cancelled_everywhere, play


@pytest.mark.parametrize("asked", SCENARIOS, ids=str)
def test_who_only_observes_changes_nothing_that_a_host_can_see(asked: Scenario) -> None:
    for seed in range(3):
        watched = Watched()
        assert play(asked, Wrapping(watched), seed=seed) == play(asked, seed=seed)
        assert watched.session.statistics().requests >= 1
        watched.must_be_sound()
        assert watched.leaves_nothing_open()


@pytest.mark.parametrize("asked", SCENARIOS, ids=str)
def test_where_nothing_is_found_healing_changes_nothing_either(asked: Scenario) -> None:
    watched = Watched("heal")
    assert play(asked, Wrapping(watched)) == play(asked)
    assert watched.patterns == []
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


@pytest.mark.parametrize("asked", [one for one in SCENARIOS if "_now" not in str(one)], ids=str)
def test_a_chat_may_be_cancelled_at_every_await(asked: Scenario) -> None:
    watched = Watched("heal")
    for step, bare, mine in cancelled_everywhere(asked, Wrapping(watched)):
        assert mine == bare and mine.steps == bare.steps, f"cancelled before step {step}"
        watched.must_be_sound()
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"
