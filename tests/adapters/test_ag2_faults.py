"""AG2, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from functools import cache, partial

import pytest

pytest.importorskip("ag2", reason="AG2 is not installed: pip install .[dev,ag2]")


from dig.adapters import ag2 as adapter

from .ag2_cases import CASES
from .ag2_teams import SCENARIOS
from .ag2_watch import Watched
from .framework_cases import Cases
from .framework_faults import PARTS, break_part
from .framework_sites import Site, Sites
from .harness import Outcome, play

SCENARIO = {one.name: one for one in SCENARIOS}
FRAGILE = ["handoffs", "between_agents", "delegating", "failing"]
SITES = Sites(adapter, graph="graph")
FAULTS = Cases(SITES, adapter, Watched, CASES, most=4)


@cache
def bare(name: str) -> Outcome:
    return play(SCENARIO[name])


def test_no_call_site_is_left_out() -> None:
    """Every place in the code is passed, and every call comes from a place that was read."""
    assert len(SITES.all) >= 45
    assert FAULTS.left_out() == []


@pytest.mark.parametrize("site", SITES.all, ids=str)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(site: Site) -> None:
    FAULTS.must_stand(site)


@pytest.mark.parametrize("called", SITES.called)
def test_what_fails_for_good_changes_nothing_for_the_host(called: str) -> None:
    watched = partial(Watched, "heal", strict=False)
    for name in FRAGILE:
        FAULTS.must_stand_for_good(called, SCENARIO[name], bare(name), watched)


@pytest.mark.parametrize("part", [*PARTS, "handoff"])
@pytest.mark.parametrize("name", FRAGILE)
def test_broken_parts_change_nothing_for_the_host(part: str, name: str) -> None:
    watched = Watched("heal", strict=False)
    break_part(watched, part)
    assert play(SCENARIO[name], watched) == bare(name)
    watched.detach()
