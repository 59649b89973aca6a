"""LangGraph, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")


from dig.adapters import langgraph as adapter

from .conformance import Faultless
from .framework_cases import Cases
from .framework_faults import PARTS
from .framework_gates import Usher, behind
from .framework_sites import Sites
from .harness import play
from .langgraph_asked import SCENARIOS, ask_twice
from .langgraph_cases import CASES, PLAIN, line
from .langgraph_watch import Watched, team

SCENARIO = {one.name: one for one in SCENARIOS}
SITES = Sites(adapter, turn_instead="turn", caller="turn")


class TestFaultless(Faultless):
    watched, scenarios = Watched, SCENARIOS
    sites, at_least = SITES, 50
    faults = Cases(SITES, adapter, Watched, CASES)
    fragile = tuple(one for one in SCENARIOS if one.name in PLAIN)
    parts = (*PARTS, "annotate", "handoff")


def test_once_the_wrapper_has_failed_nothing_is_healed_any_more() -> None:
    """What it knows may be wrong: of a request whose end it has missed, work may lie about."""
    [emit] = [site for site in SITES.all if site.called == "turn.emit"]
    asked = team(line, ask_twice)
    watched = Watched("heal", behind(Usher("Welcome."))(), strict=False)
    with SITES.passing(emit):
        assert play(asked, watched) == play(asked)
    assert watched.session.statistics().faults == 1
