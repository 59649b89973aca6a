"""AG2 classic, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")


from dig.detectors import standard
from dig.runtime.host import Setup
from dig.runtime.wrap import ag2_classic as adapter

from .ag2_classic_asked import SCENARIOS, in_group
from .ag2_classic_teams import Watched, Wrapping, scenario
from .framework_faults import PARTS, break_part, broken, call_sites
from .harness import Scenario, play
from .test_ag2_classic_healing import in_background, ping_pong, twice, two_at_once

FRAGILE = ["chat-ask", "chat-ask_now", "group-ask", "nested-ask", "failing-ask", "desks-in_group"]
ASKED = [one for one in SCENARIOS if one.name in FRAGILE]
"""Between them they come through every call of the adapter, but those of a bounce and a note."""

HEALED = [scenario(ping_pong, in_group), scenario(two_at_once, in_group), scenario(twice)]

SITES = call_sites(adapter, caller="turn")


def test_the_enumeration_of_call_sites_knows_all_there_are() -> None:
    assert set(SITES) >= {"session.begin", "session.request", "session.released", "turn.end"}
    assert len(SITES) >= 15


@pytest.mark.parametrize("site", SITES)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(site: str) -> None:
    for asked in ASKED:
        for at in (1, 3):
            watched = Watched("heal", Setup(detectors=standard), strict=False)
            with broken(site, adapter, at):
                mine = play(asked, Wrapping(watched))
            watched.detach()
            assert mine == play(asked), f"{site} raised in {asked} from call {at} on"


@pytest.mark.parametrize("site", SITES)
def test_a_fault_while_it_heals_leaves_the_host_a_result(site: str) -> None:
    for asked in [*HEALED, scenario(in_background)]:
        for at in (1, 2, 4):
            watched = Watched("heal", strict=False)
            with broken(site, adapter, at):
                mine = play(asked, Wrapping(watched))
            watched.detach()
            assert mine.returned, f"{site} raised in {asked} from call {at} on: {mine.raised}"


@pytest.mark.parametrize("part", [*PARTS, "handoff"])
@pytest.mark.parametrize("asked", [*ASKED, *HEALED], ids=str)
def test_broken_parts_change_nothing_for_the_host(part: str, asked: Scenario) -> None:
    watched = Watched("heal", strict=False)
    break_part(watched, part)
    assert play(asked, Wrapping(watched)) == play(asked)
    watched.detach()
