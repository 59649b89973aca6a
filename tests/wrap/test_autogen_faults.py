"""AutoGen, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat", reason="AutoGen is not installed")

from dig import Hold, InteractionGraph
from dig.findings import Intervention
from dig.messages import Pending
from dig.runtime.host import Setup
from dig.runtime.wrap import autogen as adapter

from .autogen_runtimes import RUNTIMES
from .autogen_teams import SCENARIOS
from .autogen_watch import Watched
from .framework_faults import PARTS, break_part, broken, call_sites
from .framework_watch import Broken
from .harness import Outcome, play

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")

SCENARIO = {one.name: one for one in (*SCENARIOS, *RUNTIMES)}
FRAGILE = [
    "swarm-ask", "dropping-ask", "graph-ask_twice", "several_first-ask", "failing-caught_and_again",
    "round_robin-cancelled", "at_once_in_turn", "telling_all", "caught", "giving_up", "odd",
]  # fmt: skip
"""Between them they come through every call of the adapter."""


@cache
def bare(name: str) -> Outcome:
    return play(SCENARIO[name])


def options(name: str) -> dict[str, Any]:
    return {"outside": {"collector"}} if SCENARIO[name] in RUNTIMES else {}


SITES = call_sites(adapter, caller="turn", sender="turn")


class Passing:
    """A gate that keeps every message, for no time at all."""

    name = "passing"

    def hold(self, monitored: InteractionGraph, event: Pending) -> Hold | None:
        return None if event.type == "notice" else Hold(60.0)

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        return ()


def test_the_enumeration_of_call_sites_knows_all_there_are() -> None:
    assert {*SITES} >= {"session.begin", "session.request", "turn.end", "turn.submit"}
    assert len(SITES) >= 15


@pytest.mark.parametrize("site", SITES)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(site: str) -> None:
    faults = 0
    for scenario in FRAGILE:
        for at in (1, 3):
            setup = Setup(gates=[Passing()] if site == "session.released" else [])
            watched = Watched("heal", setup, strict=False, **options(scenario))
            with broken(site, adapter, at) as planted:
                mine = play(SCENARIO[scenario], watched)
            faults += len(planted)
            watched.detach()
            assert mine == bare(scenario), f"{site}, {scenario}, from call {at} on"
    assert faults, "none of them comes through this call"


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
