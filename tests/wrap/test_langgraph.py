"""LangGraph, wrapped: nothing changes for who only watches, and what is found is healed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langchain_core.messages import AIMessage  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.graph import START  # noqa: E402
from langgraph.types import Command, Send  # noqa: E402

from dig.detectors import standard, standard_healers  # noqa: E402
from dig.records import HealRow, IncidentRow, Limits  # noqa: E402
from dig.runtime.host import Setup  # noqa: E402
from dig.runtime.wrap import Session  # noqa: E402
from dig.runtime.wrap import langgraph as adapter  # noqa: E402
from tests.helpers import Recorder  # noqa: E402

from .harness import Outcome, Scenario, Script, cancelled_everywhere, play  # noqa: E402
from .langgraph_teams import (  # noqa: E402
    QUESTION,
    SCENARIOS,
    ask,
    graph,
    node,
    thread,
)


class Watched:
    """Wraps graphs, and remembers their session and records."""

    def __init__(self, mode: Any = "observe", setup: Setup | None = None, **options: Any) -> None:
        self.mode = mode
        self.setup = setup or Setup(detectors=standard, healers=standard_healers)
        self.options = options
        self.records = Recorder()

    def __call__(self, team: Any) -> Any:
        plan = adapter.plan(team, **self.options)
        self.session = Session(
            plan.agents, self.setup, mode=self.mode, capabilities=plan.capabilities,
            veto=plan.veto, sink=self.records, clock=anyio.current_time, keeps_time=False,
            strict=True,
        )  # fmt: skip
        return plan.attach(self.session).team

    @property
    def patterns(self) -> list[str]:
        return [finding.pattern for finding in self.session.findings]

    def healed(self) -> list[str]:
        return [record.action for record in self.records if isinstance(record, HealRow)]

    def incidents(self) -> list[str]:
        return [record.what for record in self.records if isinstance(record, IncidentRow)]

    def leaves_nothing_open(self) -> bool:
        """Whether no turn, buffer, reservation or instance is left over, and nothing went wrong."""
        seen, monitored = self.session.statistics(), self.session.monitor.graph
        return (
            (seen.open_turns, seen.faults, seen.missed) == (0, 0, 0)
            and not monitored.activations
            and not any(agent.buffer or agent.incoming for agent in monitored.agents.values())
            and set(monitored.agents) == set(monitored.run.agents)
        )


def team(build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask) -> Scenario:
    return Scenario(build.__name__, build, drive)


# --- observe changes nothing ------------------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_who_only_observes_changes_nothing_that_a_host_can_see(scenario: Scenario) -> None:
    for seed in range(4):
        watched = Watched()
        assert play(scenario, watched, seed=seed) == play(scenario, seed=seed)
        assert watched.leaves_nothing_open()
        assert watched.session.statistics().requests >= 1


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_where_nothing_is_found_healing_changes_nothing_either(scenario: Scenario) -> None:
    watched = Watched("heal")
    assert play(scenario, watched) == play(scenario)
    assert watched.leaves_nothing_open()


CANCELLED = ["chain-ask", "fan-ask", "send-ask", "two_teams-ask", "asking-answer_back", "fan-updates"]


@pytest.mark.parametrize(
    "scenario", [one for one in SCENARIOS if one.name in CANCELLED], ids=str
)  # fmt: skip
def test_a_request_may_be_cancelled_at_every_await(scenario: Scenario) -> None:
    watched = Watched()
    for step, bare, mine in cancelled_everywhere(scenario, watched):
        assert mine == bare, f"cancelled before step {step}"
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"
