"""Microsoft agent-framework, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from dig.adapters import agent_framework as adapter
from dig.detectors import standard
from dig.runtime.host import Setup

from .agent_framework_asked import SCENARIOS, ask_twice
from .agent_framework_cases import CASES, elsewhere, team, two_workers
from .agent_framework_teams import Watched, chain
from .conformance import Faultless
from .framework_cases import Cases
from .framework_faults import PARTS
from .framework_gates import Usher, behind
from .framework_sites import Sites
from .harness import play
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


SITES = Sites(adapter, graph="graph", caller="turn")


class TestFaultless(Faultless):
    watched, scenarios = Watched, SCENARIOS
    sites, at_least = SITES, 65
    faults = Cases(SITES, adapter, Watched, CASES, most=6)
    fragile = tuple(one for one in SCENARIOS if one.name in FRAGILE)
    parts = (*PARTS, "annotate", "handoff")
    finding = Setup(detectors=standard, healers=dict)


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
    *_, end = [site for site in SITES.all if str(site).startswith("team.py") and site.name == "end"]
    asked, watched = team(chain, ask_twice), Watched("heal", behind(Usher())(), strict=False)
    with SITES.passing(end, 1, True) as passes:
        assert play(asked, watched) == play(asked)
    assert passes.planted
    watched.detach()
