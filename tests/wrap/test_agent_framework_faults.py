"""Microsoft agent-framework, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

pytest.importorskip(
    "agent_framework", reason="agent-framework is not installed: pip install .[dev,agent-framework]"
)


from dig import Hold, Inject
from dig.detectors import standard
from dig.runtime.host import Setup
from dig.runtime.wrap import agent_framework as adapter

from .agent_framework_asked import SCENARIOS
from .agent_framework_watch import Watched
from .framework_faults import PARTS, break_part, broken, call_sites
from .harness import Outcome, play

SCENARIO = {one.name: one for one in SCENARIOS}
FRAGILE = [
    "fan-ask",
    "conditional-stream",
    "several_at_once-ask",
    "asking-answer_back",
    "failing-ask",
]
"""Between them they come through every call of the adapter."""


class Usher:
    """A gate that keeps everything for a moment, and puts a note beside it."""

    name = "usher"

    def hold(self, monitored: Any, event: Any) -> Hold:
        return Hold(10.0)

    async def decide(self, event: Any) -> list[Inject]:
        return [Inject(event.id, "Welcome")]


def seen(outcome: Outcome) -> Any:
    """What a host can see, but for how turns at the same moment follow each other."""
    events = sorted(str(outcome.returned).split(", "))
    return events, outcome.raised, outcome.per_agent(), outcome.elapsed


@cache
def bare(name: str) -> Outcome:
    return play(SCENARIO[name])


SITES = call_sites(adapter)


def test_the_enumeration_of_call_sites_knows_all_there_are() -> None:
    assert set(SITES) >= {"session.begin", "session.request", "turn.end", "turn.submit"}
    assert len(SITES) >= 12


@pytest.mark.parametrize("site", SITES)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(site: str) -> None:
    faults, gates = 0, [Usher()] if site == "session.released" else []
    setup = Setup(detectors=standard, healers=dict, gates=gates)
    for scenario in [*FRAGILE, "half_join-ask"]:
        for at in (1, 3):
            watched, alone = Watched("heal", setup, strict=False), bare(scenario)
            with broken(site, adapter, at) as planted:
                mine = play(SCENARIO[scenario], watched)
                watched.detach()
            is_same = seen(mine) == seen(alone) if gates else mine == alone
            assert is_same, f"{site}, {scenario}, from call {at} on"
            faults += len(planted)
    assert faults, f"no scenario comes through {site}"


@pytest.mark.parametrize("part", [*PARTS, "annotate", "handoff"])
@pytest.mark.parametrize("name", FRAGILE)
def test_broken_parts_change_nothing_for_the_host(part: str, name: str) -> None:
    watched = Watched("heal", strict=False)
    break_part(watched, part)
    assert play(SCENARIO[name], watched) == bare(name)
    watched.detach()
