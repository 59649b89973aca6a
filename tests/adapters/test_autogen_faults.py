"""AutoGen, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dig.adapters import autogen as adapter

from .autogen_cases import CASES, OUTSIDE, net, tell_and_wait
from .autogen_runtimes import RUNTIMES
from .autogen_teams import SCENARIOS, Watched, ask_twice, graph, round_robin
from .autogen_teams import scenario as chat
from .conformance import Faultless, bare
from .framework_cases import Cases
from .framework_gates import Usher, behind
from .framework_sites import Site, Sites
from .framework_watch import Broken
from .harness import Scenario, play

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")

SCENARIO = {one.name: one for one in (*SCENARIOS, *RUNTIMES)}
FRAGILE = [
    "swarm-ask", "dropping-ask", "graph-ask_twice", "several_first-ask", "failing-caught_and_again",
    "round_robin-cancelled", "at_once_in_turn", "telling_all", "caught", "giving_up", "odd",
]  # fmt: skip


def line_of(site: Site) -> str:
    return Path(site.path).read_text().splitlines()[site.first - 1]


SITES = Sites(adapter, caller="turn", sender="turn", waiting="turn")


class TestFaultless(Faultless):
    watched, scenarios = Watched, (*SCENARIOS, *RUNTIMES)
    sites, at_least = SITES, 80
    faults = Cases(SITES, adapter, Watched, CASES, most=6)
    fragile = tuple(SCENARIO[name] for name in FRAGILE)

    def options(self, scenario: Scenario) -> dict[str, Any]:
        return {"outside": {"collector"}} if scenario in RUNTIMES else {}


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


@pytest.mark.parametrize("name", FRAGILE)
def test_a_fault_of_what_a_user_hands_in_changes_nothing_for_the_host(name: str) -> None:
    is_team = SCENARIO[name] in SCENARIOS
    more: dict[str, Any] = {"handoff": Broken()} if is_team else {"annotate": Broken()}
    watched = Watched("heal", strict=False, deliver=Broken(), **more)
    assert play(SCENARIO[name], watched) == bare(SCENARIO[name])
    watched.detach()
