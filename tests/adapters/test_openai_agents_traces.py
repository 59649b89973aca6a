"""OpenAI agents, wrapped: what a session leaves, and what the docs and the example show."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from agents import Agent, Handoff, Runner
from agents.realtime import RealtimeAgent
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner
from agents.testing import ModelStep, ScriptedModel, assistant_message

import dig
from dig import Hold
from dig.adapters.openai_agents.messages import tool_name
from dig.adapters.openai_agents.runner import of as agents_of
from dig.errors import SettingsError
from dig.graph.records import Emit
from dig.runtime.host import Setup

from .conformance import example, lines_of
from .harness import Script, cancelled_everywhere, play
from .openai_agents_asked import alone, chain, guarded, tool_and_handoff, with_tools
from .openai_agents_teams import (
    CANCELLED,
    Watched,
    agent,
    ask,
    at_once,
    calls,
    hands,
    says,
    scenario,
    stream,
    tool,
)


@pytest.mark.parametrize("build", [chain, guarded, tool_and_handoff])
@pytest.mark.parametrize("drive", [ask, at_once])
def test_a_team_that_does_its_work_has_no_findings(build: Any, drive: Any) -> None:
    for seed in range(6):
        watched = Watched()
        play(scenario(build, drive), watched, seed=seed)
        assert watched.patterns == []


def test_the_example_shows_both_failures_and_both_cures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    round_and_round, paid, early, whole = example("openai_agents", tmp_path, capsys, "ER", "ET")
    assert round_and_round == "MaxTurnsExceeded: Max turns (10) exceeded"
    assert paid == "Nobody else will: refunds pays it back."
    assert early == "The bill is mended."
    assert whole == "The bill is mended, and your parcel comes on Monday."


def test_the_lines_in_the_docs_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, *_ = lines_of("wrapping-openai-agents.md")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"agent": chain(Script())}
    asyncio.run(eval(lines, names))
    assert names["result"].final_output == "done"
    assert len([*tmp_path.glob("runs/*/result.json")]) == 1


def test_overlapping_requests_are_problems_of_their_own_and_turns_are_instances() -> None:
    watched = Watched()
    play(scenario(chain, at_once), watched)
    history = watched.session.monitor.graph.history
    seats = {history.agent(v) for v in range(len(history.activation_ids))}
    assert watched.session.statistics().requests == 3
    assert {"a", "a#2", "a#3"} <= seats
    watched.must_be_sound()


def test_unwrapping_puts_back_the_runner_that_was_there_and_no_sooner() -> None:
    class Own(AgentRunner):  # type: ignore[misc]
        pass

    own = Own()
    set_default_agent_runner(own)
    try:
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
    finally:
        set_default_agent_runner(None)
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
    asyncio.set_event_loop(loop := asyncio.new_event_loop())
    try:
        assert Runner.run_sync(other, "What now?").final_output == "done"
        assert Runner.run_sync(team, "What now?").final_output == "done"
        assert own.asked == ["other", "wrapped"]
        assert dig.session_of(team).statistics().requests == 1
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        dig.unwrap(team)
        set_default_agent_runner(None)


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
    asyncio.set_event_loop(loop := asyncio.new_event_loop())  # else the SDK leaves one unclosed
    try:
        result = Runner.run_sync(team, "What now?")
        assert result.final_output == "done"
        assert dig.session_of(team).statistics().requests == 1
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        dig.unwrap(team)


def test_a_realtime_agent_is_refused() -> None:
    with pytest.raises(SettingsError, match="RealtimeAgent is no agent that Runner"):
        dig.wrap(RealtimeAgent(name="voice"))


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
    assert play(scenario(twins, drive), watched) == play(scenario(twins, drive))
    assert watched.session.monitor.graph.run.agents == ("a", "desk", "desk (2)", "desk (3)")
    rows = [row for row in watched.records if isinstance(row, Emit) and row.type != "notice"]
    assert [(row.to, row.payload) for row in rows] == [
        (("a",), "What now?"),
        (("desk (2)",), "y"),
        (("desk (3)",), "x"),
        (("desk (2)",), "inner done"),
        (("a",), "outer done"),
        (("desk",), {"handoff": "desk", "with": '{"reason":"tired"}'}),
        ((), "done"),
    ]
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


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
    payloads = [row.payload for row in watched.records if isinstance(row, Emit)]
    assert "no id" in str(payloads) and "new_" not in str(payloads)
    assert "ask_b-1" not in str(payloads)


def test_what_the_sdk_cannot_be_made_to_do_is_refused() -> None:
    with pytest.raises(SettingsError, match="cannot reroute"):
        dig.wrap(alone(Script()), require={"reroute"})


@pytest.mark.parametrize("drive", [ask, stream])
def test_calls_of_tools_are_events_where_that_is_wanted(drive: Any) -> None:
    """Each tool is an agent `tool:NAME`; what it returns, an error too, is a `tool_result`."""
    watched, asked = Watched("heal", tools=True), scenario(with_tools, drive)
    assert play(asked, watched) == play(asked)
    sent = [row for row in watched.records if isinstance(row, Emit)]
    called = [(row.to, row.payload) for row in sent if row.type == "tool_call"]
    rome = {"city": "Rome"}
    assert called == [(("tool:weather",), rome), (("tool:time",), rome)]
    weather, time = sorted(str(row.payload) for row in sent if row.type == "tool_result")[::-1]
    assert weather == "sunny in Rome" and time.startswith("An error occurred")
    assert watched.patterns == []
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


def test_calls_of_tools_are_no_part_of_the_graph_otherwise() -> None:
    watched = Watched()
    play(scenario(with_tools), watched)
    assert not any(row.type.startswith("tool") for row in watched.records if isinstance(row, Emit))


class Slow:
    """Keeps what a tool is called with for ten seconds."""

    name = "slow"

    def hold(self, graph: Any, event: Any) -> Any:
        return Hold(60.0) if event.type == "tool_call" else None

    async def decide(self, event: Any) -> Any:
        await asyncio.sleep(10)
        return ()


def test_a_gate_may_keep_what_a_tool_is_called_with() -> None:
    """The tool begins when the gate has decided."""
    watched = Watched("heal", setup=Setup(gates=[Slow()]), tools=True)
    kept = play(scenario(with_tools), watched)
    assert kept.elapsed == play(scenario(with_tools)).elapsed + 10
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


@CANCELLED[0]
@CANCELLED[1]
def test_a_tool_that_a_cancelled_run_leaves_behind_is_given_up() -> None:
    watched = Watched(tools=True)
    for _, bare, mine in cancelled_everywhere(scenario(with_tools), watched):
        assert mine == bare
        watched.detach()
        assert watched.leaves_nothing_open()


def test_a_default_runner_that_is_a_mock_is_called_as_before() -> None:
    """As a user's own tests have it."""
    mock = Mock(spec=AgentRunner)
    mock.run = AsyncMock(return_value="done")
    set_default_agent_runner(mock)
    try:
        team = dig.wrap(Agent(name="a"))
        assert asyncio.run(Runner.run(team, "?")) == "done"
        assert mock.run.call_count == 1
        Runner.run_sync(team, "?")
        assert mock.run_sync.call_count == 1
        dig.unwrap(team)
        assert get_default_agent_runner() is mock
    finally:
        set_default_agent_runner(None)


def test_an_sdk_that_is_put_together_in_another_way_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message names the part that is missing."""
    monkeypatch.delattr(AgentRunner, "run_streamed")
    with pytest.raises(SettingsError, match="in another way: AgentRunner has no run_streamed"):
        dig.wrap(Agent(name="a"))
