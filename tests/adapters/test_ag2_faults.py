"""AG2, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from dig.adapters import ag2 as adapter

from .ag2_cases import CASES
from .ag2_teams import SCENARIOS, Watched
from .conformance import Faultless
from .framework_cases import Cases
from .framework_faults import PARTS
from .framework_sites import Sites

SCENARIO = {one.name: one for one in SCENARIOS}
FRAGILE = ["handoffs", "between_agents", "delegating", "failing"]
SITES = Sites(adapter, graph="graph")


class TestFaultless(Faultless):
    watched, scenarios = Watched, SCENARIOS
    sites, at_least = SITES, 45
    faults = Cases(SITES, adapter, Watched, CASES, most=4)
    fragile = tuple(one for one in SCENARIOS if one.name in FRAGILE)
    parts = (*PARTS, "handoff")
