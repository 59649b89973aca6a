"""A budget of a workflow: the entry executor works once more on its latest input."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("agent_framework")

import agent_framework as af

import dig
from dig.graph.records import Record

from .agent_framework_teams import Model
from .harness import Script
from .test_budget import incidents


class Passer(af.Executor):  # type: ignore[misc]
    """Sends on for ever; gives an output at first, and when it is asked to hand back."""

    def __init__(self, id: str, answer: str | None = None) -> None:
        super().__init__(id)
        self._answer = answer

    @af.handler  # type: ignore[untyped-decorator]
    async def on_text(self, data: str, ctx: af.WorkflowContext[str, str]) -> None:
        """A text comes."""
        if self._answer is not None and any("used up" in note for note in dig.notes()):
            await ctx.yield_output(self._answer)
        await ctx.send_message(f"{data[:1]}{self.id}")


def loop(answer: str | None) -> Any:
    a, b = Passer("a", answer), Passer("b")
    builder = af.WorkflowBuilder(start_executor=a, output_from=[a])
    return builder.add_edge(a, b).add_edge(b, a).build()


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_a_loop_is_stopped(mode: Any) -> None:
    """The output of the last turn is that of the run; the workflow can be run again."""
    records: list[Record] = []
    team = dig.wrap(loop("half"), mode=mode, budget={"turns": 20}, sink=records.append)

    async def ask_twice() -> list[Any]:
        return [await team.run("?"), await team.run("!")]

    results = asyncio.run(ask_twice())
    session = dig.session_of(team)
    dig.unwrap(team)
    assert [result.get_outputs() for result in results] == [["half"], ["half"]]
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"] * 2
    assert session.statistics().faults == 0
    assert session.statistics().open_turns == 0


def test_an_executor_that_hands_nothing_back_fails_the_request() -> None:
    records: list[Record] = []
    team = dig.wrap(loop(None), budget={"turns": 20}, sink=records.append)
    with pytest.raises(
        dig.BudgetExceeded, match="stopped at 20 turns, and `a` handed back no"
    ) as it:
        asyncio.run(team.run("?"))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert it.value.partial[-1] == "?b"
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0
    assert session.statistics().open_turns == 0


def test_a_stream_is_stopped_too() -> None:
    """With the last turn in it."""
    team = dig.wrap(loop("half"), budget={"turns": 4})

    async def read() -> list[Any]:
        return [event async for event in team.run("?", stream=True) if event.type == "output"]

    events = asyncio.run(read())
    dig.unwrap(team)
    assert [event.data for event in events] == ["half"]


def test_many_workflows_have_a_budget_each(crowd: int) -> None:
    """A workflow refuses a second run at the same time."""
    teams = [dig.wrap(loop(f"half {n}"), budget={"turns": 4}) for n in range(crowd)]

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(team.run("?") for team in teams))

    results = asyncio.run(ask_all())
    for team in teams:
        dig.unwrap(team)
    assert [result.get_outputs() for result in results] == [[f"half {n}"] for n in range(crowd)]


def test_agents_are_shown_the_note() -> None:
    """Two agents that answer each other for ever."""
    script = Script()

    def speak(texts: list[str], number: int) -> str:
        return "half" if "used up" in texts[-1] else f"turn {number}"

    agents = [af.Agent(Model(script, name, speak), name=name) for name in "ab"]
    a, b = (af.AgentExecutor(agent, id=agent.name) for agent in agents)
    workflow = af.WorkflowBuilder(start_executor=a).add_edge(a, b).add_edge(b, a).build()
    records: list[Record] = []
    team = dig.wrap(workflow, budget={"turns": 6}, sink=records.append)
    result = asyncio.run(team.run("?"))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert [output.text for output in result.get_outputs()][-1] == "half"
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    assert session.statistics().faults == 0
