"""OpenAI agents, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from typing import Any

import pytest

from dig.adapters import openai_agents as adapter
from dig.detectors import standard
from dig.runtime.host import Setup

from .conformance import Faultless, bare
from .framework_cases import Cases
from .framework_faults import broken
from .framework_sites import Sites
from .framework_watch import Broken
from .harness import Scenario, play
from .openai_agents_asked import SCENARIOS
from .openai_agents_cases import CASES, PLAIN, THEIR_OWN, ask_twice
from .openai_agents_teams import Watched, ask, scenario, stream
from .test_openai_agents_healing import ping_pong, two_at_once

ASKED = [one for one in SCENARIOS if one.name in PLAIN]
SITES = Sites(adapter, asker="turn")


class TestFaultless(Faultless):
    watched, scenarios = Watched, SCENARIOS
    sites, at_least = SITES, 35
    faults = Cases(SITES, adapter, Watched, CASES)
    fragile, broken_in = ASKED, (*ASKED, scenario(two_at_once), scenario(ping_pong))
    finding = Setup(detectors=standard)


def test_once_the_wrapper_has_failed_nothing_is_healed_any_more() -> None:
    """What it knows may be wrong: of a run whose end it has missed, work may lie about."""
    [request] = [site for site in SITES.all if site.called == "session.request"]
    asked = scenario(two_at_once, ask_twice)
    watched = Watched("heal", strict=False)
    with SITES.passing(request, 1, True):
        assert play(asked, watched) == play(asked)
    assert watched.session.statistics().faults == 1


@pytest.mark.parametrize("called", SITES.called)
@pytest.mark.parametrize("build", [two_at_once, ping_pong])
def test_what_fails_while_it_heals_leaves_the_host_a_result_or_its_own_exception(
    build: Any, called: str
) -> None:
    for at in (1, 2, 3, 5):
        watched = Watched("heal", strict=False)
        with broken(called, adapter, at):
            mine = play(scenario(build), watched)
        assert mine.returned or mine.raised[0][0] == "MaxTurnsExceeded"


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("asked", THEIR_OWN, ids=str)
def test_what_the_callers_own_hook_raises_the_caller_gets(asked: Scenario, mode: str) -> None:
    watched = Watched(mode, Setup(detectors=standard) if mode == "heal" else None)
    assert play(asked, watched) == bare(asked)
    assert "today" in bare(asked).raised[-1][1]
    assert watched.leaves_nothing_open()


@pytest.mark.parametrize("drive", [ask, stream])
def test_an_annotate_that_raises_changes_nothing_for_the_host(drive: Any) -> None:
    asked = scenario(ping_pong, drive)
    watched = Watched("heal", strict=False, annotate=Broken())
    assert play(asked, watched) == bare(asked)
    assert watched.session.statistics().faults > 0
