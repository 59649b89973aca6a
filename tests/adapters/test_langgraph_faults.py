"""LangGraph, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from functools import cache, partial

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")


from dig.adapters import langgraph as adapter

from .framework_cases import Cases
from .framework_faults import PARTS, break_part
from .framework_gates import Usher, behind
from .framework_sites import Site, Sites
from .harness import Outcome, play
from .langgraph_asked import SCENARIOS, ask_twice
from .langgraph_cases import CASES, PLAIN, line
from .langgraph_watch import Watched, team

SCENARIO = {one.name: one for one in SCENARIOS}
SITES = Sites(adapter, turn_instead="turn")
FAULTS = Cases(SITES, adapter, Watched, CASES)


@cache
def bare(name: str) -> Outcome:
    return play(SCENARIO[name])


def test_no_call_site_is_left_out() -> None:
    """Every place in the code is passed, and every call comes from a place that was read."""
    assert len(SITES.all) >= 50
    assert FAULTS.left_out() == []


@pytest.mark.parametrize("site", SITES.all, ids=str)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(site: Site) -> None:
    FAULTS.must_stand(site)


def test_once_the_wrapper_has_failed_nothing_is_healed_any_more() -> None:
    """What it knows may be wrong: of a request whose end it has missed, work may lie about."""
    [emit] = [site for site in SITES.all if site.called == "turn.emit"]
    asked = team(line, ask_twice)
    watched = Watched("heal", behind(Usher("Welcome."))(), strict=False)
    with SITES.passing(emit):
        assert play(asked, watched) == play(asked)
    assert watched.session.statistics().faults == 1


@pytest.mark.parametrize("called", SITES.called)
def test_what_fails_for_good_changes_nothing_for_the_host(called: str) -> None:
    watched = partial(Watched, "heal", strict=False)
    for name in PLAIN:
        FAULTS.must_stand_for_good(called, SCENARIO[name], bare(name), watched)


@pytest.mark.parametrize("part", [*PARTS, "annotate", "handoff"])
@pytest.mark.parametrize("name", [*PLAIN])
def test_broken_parts_change_nothing_for_the_host(part: str, name: str) -> None:
    watched = Watched("heal", strict=False)
    break_part(watched, part)
    assert play(SCENARIO[name], watched) == bare(name)
