"""LangGraph, wrapped: who only observes changes nothing that a host can see."""

from __future__ import annotations

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from .conformance import Recorded, Unchanged
from .langgraph_asked import SCENARIOS
from .langgraph_watch import Watched


class TestUnchanged(Unchanged):
    watched, scenarios = Watched, SCENARIOS
    cancelled = tuple(
        one
        for one in SCENARIOS
        if one.name
        in (
            "chain-ask",
            "fan-ask",
            "send-ask",
            "two_teams-ask",
            "asking-answer_back",
            "fan-updates",
        )
    )


class TestRecorded(Recorded):
    watched, scenarios, package = Watched, SCENARIOS, "langgraph"
