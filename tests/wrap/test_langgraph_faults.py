"""LangGraph, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from functools import cache

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")


from dig.runtime.wrap import langgraph as adapter

from .framework_faults import PARTS, break_part, broken, call_sites
from .harness import Outcome, play
from .langgraph_asked import SCENARIOS
from .langgraph_watch import Watched

SCENARIO = {one.name: one for one in SCENARIOS}
FRAGILE = [
    "fan-ask",
    "send-ask",
    "two_teams-ask",
    "failing-ask",
    "retried-ask",
    "asking-answer_back",
]
"""Between them they come through every call of the adapter."""


SITES = call_sites(adapter)


@cache
def bare(name: str) -> Outcome:
    return play(SCENARIO[name])


def test_the_enumeration_of_call_sites_knows_all_there_are() -> None:
    assert set(SITES) >= {"session.begin", "session.request", "turn.end"}
    assert len(SITES) >= 13


@pytest.mark.parametrize("site", SITES)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(site: str) -> None:
    for scenario in FRAGILE:
        for at in (1, 3):
            watched = Watched("heal", strict=False)
            with broken(site, adapter, at):
                mine = play(SCENARIO[scenario], watched)
            watched.detach()
            assert mine == bare(scenario), f"{site}, {scenario}, from call {at} on"


@pytest.mark.parametrize("part", [*PARTS, "annotate", "handoff"])
@pytest.mark.parametrize("name", [*FRAGILE, "half_join-ask"])
def test_broken_parts_change_nothing_for_the_host(part: str, name: str) -> None:
    watched = Watched("heal", strict=False)
    break_part(watched, part)
    assert play(SCENARIO[name], watched) == bare(name)
