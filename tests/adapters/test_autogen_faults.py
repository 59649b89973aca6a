"""AutoGen, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat", reason="AutoGen is not installed")

from dig.adapters import autogen as adapter

from .autogen_cases import CASES, OUTSIDE, net, tell_and_wait
from .autogen_runtimes import RUNTIMES
from .autogen_teams import SCENARIOS, ask_twice, graph, round_robin
from .autogen_teams import scenario as chat
from .autogen_watch import Watched
from .framework_cases import Cases
from .framework_faults import PARTS, break_part
from .framework_gates import Usher, behind
from .framework_sites import Site, Sites
from .framework_watch import Broken
from .harness import Outcome, play

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")

SCENARIO = {one.name: one for one in (*SCENARIOS, *RUNTIMES)}
FRAGILE = [
    "swarm-ask", "dropping-ask", "graph-ask_twice", "several_first-ask", "failing-caught_and_again",
    "round_robin-cancelled", "at_once_in_turn", "telling_all", "caught", "giving_up", "odd",
]  # fmt: skip


def line_of(site: Site) -> str:
    return Path(site.path).read_text().splitlines()[site.first - 1]


@cache
def bare(name: str) -> Outcome:
    return play(SCENARIO[name])


def options(name: str) -> dict[str, Any]:
    return {"outside": {"collector"}} if SCENARIO[name] in RUNTIMES else {}


SITES = Sites(adapter, caller="turn", sender="turn", waiting="turn")
FAULTS = Cases(SITES, adapter, Watched, CASES, most=6)


def test_no_call_site_is_left_out() -> None:
    """Every place in the code is passed, and every call comes from a place that was read."""
    assert len(SITES.all) >= 80
    assert FAULTS.left_out() == []


@pytest.mark.parametrize("site", SITES.all, ids=str)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(site: Site) -> None:
    FAULTS.must_stand(site)


def test_once_the_wrapper_has_failed_nobody_is_told_anything() -> None:
    """What it knows may be wrong: it has missed the answer, and nobody is to be woken for one."""

    async def ann(node: Any, message: Any) -> None:
        await node.tell("results", "Here it is")

    told: list[str] = []
    [publish] = [site for site in SITES.all if site.called == "step" and "_post, " in line_of(site)]
    watched = Watched("heal", strict=False, deliver=lambda *what: told.extend(what), **OUTSIDE)
    asked = net("answering", {"ann": ann}, tell_and_wait)
    with SITES.passing(publish, 2) as passes:
        assert play(watched.ticking(asked), watched) == play(asked)
    assert passes.planted and watched.healed() == ["create"] and told == []


@pytest.mark.parametrize("build", [round_robin, graph])
def test_what_is_held_while_the_wrapper_fails_delays_nobody(build: Any) -> None:
    """Nobody waits for what is sent in the step that fails, and it keeps back nothing else."""
    asked = chat(build, ask_twice)
    for end in [site for site in SITES.all if site.called == "turn.end"]:
        watched = Watched("heal", behind(Usher())(), strict=False)
        with SITES.passing(end, 1, True):
            assert play(asked, watched).elapsed == play(asked).elapsed
        watched.detach()


@pytest.mark.parametrize("called", SITES.called)
def test_what_fails_for_good_changes_nothing_for_the_host(called: str) -> None:
    for name in FRAGILE:
        watched = partial(Watched, "heal", strict=False, **options(name))
        FAULTS.must_stand_for_good(called, SCENARIO[name], bare(name), watched)


@pytest.mark.parametrize("name", FRAGILE)
def test_a_fault_of_what_a_user_hands_in_changes_nothing_for_the_host(name: str) -> None:
    is_team = SCENARIO[name] in SCENARIOS
    more: dict[str, Any] = {"handoff": Broken()} if is_team else {"annotate": Broken()}
    watched = Watched("heal", strict=False, deliver=Broken(), **more)
    assert play(SCENARIO[name], watched) == bare(name)
    watched.detach()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", FRAGILE)
def test_broken_parts_change_nothing_for_the_host(part: str, name: str) -> None:
    watched = Watched("heal", strict=False)
    break_part(watched, part)
    assert play(SCENARIO[name], watched) == bare(name)
    watched.detach()
