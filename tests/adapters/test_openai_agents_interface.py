"""OpenAI agents, wrapped: used as before; what a session leaves, and what it tells of tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import getmembers, isfunction
from itertools import count
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from agents import Agent, Handoff, Runner
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner
from agents.testing import ModelStep, ScriptedModel, assistant_message

import dig
from dig.adapters.openai_agents.messages import tool_name
from dig.adapters.openai_agents.runner import MonitoredRunner
from dig.adapters.openai_agents.runner import of as agents_of
from dig.graph.records import Emit

from .framework_gates import behind, usher
from .harness import Script, cancelled_everywhere, play
from .openai_agents_teams import (
    CANCELLED,
    Watched,
    agent,
    alone,
    ask,
    at_once,
    calls,
    chain,
    guarded,
    hands,
    says,
    scenario,
    stream,
    tool,
    tool_and_handoff,
    with_tools,
)


@pytest.fixture(autouse=True)
def _runner_of_the_sdk() -> Iterator[None]:
    """Each test leaves the SDK with the runner that it has of its own."""
    yield
    set_default_agent_runner(None)


@contextmanager
def a_loop() -> Iterator[None]:
    """While a block lasts, there is a loop: else the SDK makes one, and does not close it."""
    asyncio.set_event_loop(loop := asyncio.new_event_loop())
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@pytest.mark.parametrize("build", [chain, guarded, tool_and_handoff])
@pytest.mark.parametrize("drive", [ask, at_once])
def test_a_team_that_does_its_work_has_no_findings(build: Any, drive: Any) -> None:
    for seed in range(6):
        watched = Watched()
        play(scenario(build, drive), watched, seed=seed)
        assert watched.patterns == []


def test_unwrapping_puts_back_the_runner_that_was_there_and_no_sooner() -> None:
    class Own(AgentRunner):  # type: ignore[misc]
        pass

    own = Own()
    set_default_agent_runner(own)
    first, second = alone(Script()), alone(Script())
    assert dig.wrap(first) is first and dig.wrap(first) is first
    dig.wrap(second)
    sessions = dig.session_of(first), dig.session_of(second)
    asyncio.run(ask(second))
    assert dig.unwrap(first) is first
    assert get_default_agent_runner() is not own
    asyncio.run(ask(first))
    dig.unwrap(second)
    assert get_default_agent_runner() is own
    asyncio.run(ask(second))
    assert [session.statistics().requests for session in sessions] == [0, 1]


def test_a_custom_runner_does_what_it_did_for_wrapped_and_other_agents() -> None:
    """Its `run_sync` is called, with its own state, and runs of wrapped teams are monitored."""

    class Own(AgentRunner):  # type: ignore[misc]
        def __init__(self) -> None:
            self.asked: list[str] = []

        def run_sync(self, starting_agent: Any, input: Any, **options: Any) -> Any:
            self.asked.append(starting_agent.name)
            return super().run_sync(starting_agent, input, **options)

    def saying(name: str) -> Agent[Any]:
        done = ModelStep.respond(lambda call: [assistant_message("done")])
        return Agent(name=name, model=ScriptedModel([done]))

    own, other, team = Own(), saying("other"), saying("wrapped")
    set_default_agent_runner(own)
    dig.wrap(team)
    with a_loop():
        assert Runner.run_sync(other, "What now?").final_output == "done"
        assert Runner.run_sync(team, "What now?").final_output == "done"
    assert own.asked == ["other", "wrapped"]
    assert dig.session_of(team).statistics().requests == 1
    dig.unwrap(team)


def test_agents_of_any_name_are_known_and_nothing_more_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def build(script: Script) -> Any:
        b = agent(script, "Büro, 2. Stock", says("done"))
        return agent(script, "a", hands("b_ro__2__stock"), handoffs=[b])

    logged = []
    for watched in (None, Watched()):
        caplog.clear()
        outcome = play(scenario(build, name="odd"), *filter(None, [watched]))
        assert "'answer': 'done'" in str(outcome.returned)
        logged.append([record.getMessage() for record in caplog.records])
    assert logged[0] == logged[1] and logged[0]
    assert Handoff.default_tool_name(Agent(name="Büro, 2. Stock")) == tool_name("Büro, 2. Stock")


def test_runs_on_a_thread_of_their_own_are_monitored_too() -> None:
    team = dig.wrap(alone(Script()))
    with a_loop():
        assert Runner.run_sync(team, "What now?").final_output == "done"
    assert dig.session_of(team).statistics().requests == 1
    dig.unwrap(team)


def twins(script: Script) -> Any:
    """Three agents are called `desk`: a tool, one that it reaches, and one at the end."""
    last = agent(script, "desk", says("done"))
    inner = agent(script, "desk", says("inner done"))
    inner_tool = inner.as_tool("inner", "Asks the inner desk.")
    outer = agent(script, "desk", calls("inner", input="x"), says("outer done"), tools=[inner_tool])
    outer_tool = outer.as_tool("outer", "Asks the outer desk.")
    replies = calls("outer", input="y"), hands("desk", reason="tired")
    return agent(script, "a", *replies, tools=[outer_tool], handoffs=[last])


@pytest.mark.parametrize("drive", [ask, stream])
def test_agents_of_one_name_have_numbers_in_the_order_in_which_they_are_reached(
    drive: Any,
) -> None:
    """Questions, answers and handoffs go to the right one."""
    watched = Watched("heal")
    watched.must_change_nothing(scenario(twins, drive))
    assert watched.session.monitor.graph.run.agents == ("a", "desk", "desk (2)", "desk (3)")
    rows = [row for row in watched.rows(Emit) if row.type != "notice"]
    assert [(row.to, row.payload) for row in rows] == [
        (("a",), "What now?"),
        (("desk (2)",), "y"),
        (("desk (3)",), "x"),
        (("desk (2)",), "inner done"),
        (("a",), "outer done"),
        (("desk",), {"handoff": "desk", "with": '{"reason":"tired"}'}),
        ((), "done"),
    ]
    watched.must_be_over()


def test_a_name_with_a_number_that_is_taken_is_not_given_again() -> None:
    """An agent that is called so already keeps its name if it is reached first."""
    others = [Agent(name=name) for name in ("desk (2)", "desk", "desk (2)")]
    team = Agent(name="desk", handoffs=[*others])
    assert [*agents_of(team)] == ["desk", "desk (2)", "desk (3)", "desk (2) (2)"]


def asking_with_history(script: Script) -> Any:
    """A tool asks an agent the same again and again, with a history whose ids are new each time."""
    b = agent(script, "b", says("b done"))

    @tool()
    async def ask_b() -> str:
        ids = {name: f"new_{next(numbers)}" for name in ("id", "call_id")}
        call = {**ids, "type": "function_call", "name": "look", "arguments": "{}"}
        result = {"call_id": ids["call_id"], "type": "function_call_output", "output": "no id"}
        given: list[Any] = [{"role": "user", "content": "How many?"}, call, result]
        return str((await Runner.run(b, given)).final_output)

    return agent(script, "a", *[calls("ask_b")] * 7, says("done"), tools=[ask_b])


numbers = count()


@pytest.mark.parametrize("tools", [False, True])
def test_ids_of_calls_and_messages_hide_no_loop(tools: bool) -> None:
    """They are no words, and stand in no payload."""
    watched = Watched(tools=tools)
    play(scenario(asking_with_history), watched)
    assert watched.patterns[:1] == ["LOOP"]
    payloads = [row.payload for row in watched.rows(Emit)]
    assert "no id" in str(payloads) and "new_" not in str(payloads)
    assert "ask_b-1" not in str(payloads)


@pytest.mark.parametrize("drive", [ask, stream])
def test_calls_of_tools_are_events_where_that_is_wanted(drive: Any) -> None:
    """Each tool is an agent `tool:NAME`; what it returns, an error too, is a `tool_result`."""
    watched = Watched("heal", tools=True)
    watched.must_change_nothing(scenario(with_tools, drive))
    sent = watched.rows(Emit)
    called = [(row.to, row.payload) for row in sent if row.type == "tool_call"]
    rome = {"city": "Rome"}
    assert called == [(("tool:weather",), rome), (("tool:time",), rome)]
    weather, time = sorted(str(row.payload) for row in sent if row.type == "tool_result")[::-1]
    assert weather == "sunny in Rome" and time.startswith("An error occurred")
    assert watched.patterns == []
    watched.must_be_over()


def test_calls_of_tools_are_no_part_of_the_graph_otherwise() -> None:
    watched = Watched()
    play(scenario(with_tools), watched)
    assert not any(row.type.startswith("tool") for row in watched.rows(Emit))


@pytest.mark.parametrize("kind", ["tool_call", "tool_result"])
def test_a_gate_may_keep_what_a_tool_is_called_with_and_what_it_returns(kind: str) -> None:
    """The tool begins, and the agent goes on, when the gate has decided."""
    gate = usher(keeps=lambda graph, event: event.type == kind, after_s=10.0)
    watched = Watched("heal", behind(gate)(), tools=True)
    kept = play(scenario(with_tools), watched)
    assert kept.elapsed == play(scenario(with_tools)).elapsed + 10
    assert {*watched.incidents()} == {"waits"}
    watched.must_be_over()


@CANCELLED[0]
@CANCELLED[1]
def test_a_tool_that_a_cancelled_run_leaves_behind_is_given_up(every: int) -> None:
    watched = Watched(tools=True)
    for _, bare, mine in cancelled_everywhere(scenario(with_tools), watched, every=every):
        assert mine == bare
        watched.detach()
        assert watched.leaves_nothing_open()


def test_a_default_runner_that_is_a_mock_is_called_as_before() -> None:
    """As a user's own tests have it."""
    mock = Mock(spec=AgentRunner)
    mock.run = AsyncMock(return_value="done")
    set_default_agent_runner(mock)
    team = dig.wrap(Agent(name="a"))
    assert asyncio.run(Runner.run(team, "?")) == "done"
    assert mock.run.call_count == 1
    Runner.run_sync(team, "?")
    assert mock.run_sync.call_count == 1
    dig.unwrap(team)
    assert get_default_agent_runner() is mock


def test_the_runner_is_replaced_as_a_whole() -> None:
    """Whatever the SDK asks of its runner is a method of the one in its place."""
    names = {name for name, _ in getmembers(AgentRunner, isfunction) if not name.startswith("_")}
    assert names == names & vars(MonitoredRunner).keys() | {"run_sync"}, (
        "which is the runner's own, and comes back to `run`"
    )


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("method", ["run", "run_streamed"])
def test_the_runner_can_be_called_by_name(method: str, mode: Any) -> None:
    """Each argument may be given by its name, as without a monitor."""

    async def drive(team: Any) -> Any:
        runner: Any = get_default_agent_runner()
        result = getattr(runner, method)(starting_agent=team, input="?", max_turns=3)
        if asyncio.iscoroutine(result):
            return (await result).final_output
        async for _ in result.stream_events():
            pass
        return result.final_output

    asked = scenario(alone, drive, method)
    assert play(asked, Watched(mode)).returned == play(asked).returned == "'done'"
