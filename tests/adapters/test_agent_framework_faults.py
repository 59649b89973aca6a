"""Microsoft agent-framework, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from functools import cache, partial

import pytest

pytest.importorskip(
    "agent_framework", reason="agent-framework is not installed: pip install .[dev,agent-framework]"
)


from dig.adapters import agent_framework as adapter
from dig.detectors import standard
from dig.runtime.host import Setup

from .agent_framework_asked import SCENARIOS, ask_twice
from .agent_framework_cases import CASES, elsewhere, team, two_workers
from .agent_framework_teams import chain
from .agent_framework_watch import Watched
from .framework_cases import Cases
from .framework_faults import PARTS, break_part
from .framework_gates import Usher, behind
from .framework_sites import Site, Sites
from .harness import Outcome, play
from .test_agent_framework_healing import ping_pong

SCENARIO = {one.name: one for one in SCENARIOS}
FRAGILE = [
    "fan-ask",
    "conditional-stream",
    "several_at_once-ask",
    "asking-answer_back",
    "failing-ask",
    "half_join-ask",
]


@cache
def bare(name: str) -> Outcome:
    return play(SCENARIO[name])


SITES = Sites(adapter, graph="graph")
FAULTS = Cases(SITES, adapter, Watched, CASES, most=6)


def test_no_call_site_is_left_out() -> None:
    """Every place in the code is passed, and every call comes from a place that was read."""
    assert len(SITES.all) >= 65
    assert FAULTS.left_out() == []


@pytest.mark.parametrize("site", SITES.all, ids=str)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(site: Site) -> None:
    FAULTS.must_stand(site)


def test_once_the_wrapper_has_failed_nothing_is_healed_any_more() -> None:
    """What it knows may be wrong: nobody is shown a note, and no message goes to another."""
    [request] = [site for site in SITES.all if site.called == "session.request"][:1]
    for asked, setup in ((team(ping_pong), None), (team(two_workers, ask_twice), elsewhere())):
        watched = Watched("heal", setup, strict=False)
        with SITES.passing(request, 1, True):
            assert play(asked, watched) == play(asked)
        watched.detach()
        assert watched.session.statistics().faults == 1


def test_what_is_held_while_the_wrapper_fails_delays_nobody() -> None:
    """Nobody waits for what is sent in the step that fails, and it keeps back nothing else."""
    [end] = [site for site in SITES.all if str(site).startswith("team.py") and site.name == "end"]
    asked, watched = team(chain, ask_twice), Watched("heal", behind(Usher())(), strict=False)
    with SITES.passing(end, 1, True) as passes:
        assert play(asked, watched) == play(asked)
    assert passes.planted
    watched.detach()


@pytest.mark.parametrize("called", SITES.called)
def test_what_fails_for_good_changes_nothing_for_the_host(called: str) -> None:
    watched = partial(Watched, "heal", Setup(detectors=standard, healers=dict), strict=False)
    for name in FRAGILE:
        FAULTS.must_stand_for_good(called, SCENARIO[name], bare(name), watched)


@pytest.mark.parametrize("part", [*PARTS, "annotate", "handoff"])
@pytest.mark.parametrize("name", FRAGILE)
def test_broken_parts_change_nothing_for_the_host(part: str, name: str) -> None:
    watched = Watched("heal", strict=False)
    break_part(watched, part)
    assert play(SCENARIO[name], watched) == bare(name)
    watched.detach()
