"""AG2 classic, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")


from dig.adapters import ag2_classic as adapter
from dig.detectors import standard
from dig.runtime.host import Setup

from .ag2_classic_asked import SCENARIOS, in_group, nested
from .ag2_classic_cases import CASES
from .ag2_classic_cases import Watched as Whole
from .ag2_classic_teams import Watched, Wrapping, scenario
from .conformance import Faultless
from .framework_cases import Cases
from .framework_faults import PARTS, broken
from .framework_sites import Sites
from .harness import play
from .test_ag2_classic_healing import in_background, ping_pong, twice, two_at_once

FRAGILE = ["chat-ask", "chat-ask_now", "group-ask", "nested-ask", "failing-ask", "desks-in_group"]
ASKED = [one for one in SCENARIOS if one.name in FRAGILE]
HEALED = [scenario(ping_pong, in_group), scenario(two_at_once, in_group), scenario(twice)]

SITES = Sites(adapter, caller="turn")


class TestFaultless(Faultless):
    watched, scenarios = Watched, SCENARIOS
    sites, at_least = SITES, 35
    faults = Cases(SITES, adapter, Whole, CASES, most=6)
    fragile, broken_in = ASKED, (*ASKED, *HEALED)
    parts = (*PARTS, "handoff")
    finding = Setup(detectors=standard)

    def wrap(self, watched: Any) -> Wrapping:
        return Wrapping(watched)


def test_once_one_chat_is_lost_no_answer_of_any_is_sent_back() -> None:
    """Ann is not asked twice because the wrapper has missed what came of a chat of hers."""
    in_first = [site for site in SITES.all if site.called == "turn.call"][-1]
    asked, watched = scenario(nested), Whole("heal", strict=False)
    with SITES.passing(in_first, after=True) as passes:
        assert play(asked, watched) == play(asked)
    assert passes.planted and watched.patterns == ["ET"]


@pytest.mark.parametrize("called", SITES.called)
def test_what_fails_for_good_while_it_heals_leaves_the_host_a_result(called: str) -> None:
    for asked in [*HEALED, scenario(in_background)]:
        for at in (1, 2, 4):
            watched = Watched("heal", strict=False)
            with broken(called, adapter, at):
                mine = play(asked, Wrapping(watched))
            watched.detach()
            assert mine.returned, f"{called} raised in {asked} from call {at} on: {mine.raised}"
