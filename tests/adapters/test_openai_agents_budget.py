"""A budget of OpenAI agents: the entry agent is asked once more, with the conversation so far."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import Agent, Runner, Usage, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

import dig
from dig.graph.records import Record

from .test_budget import incidents

set_tracing_disabled(True)


def scripted(respond: Callable[[Any], Any], usage: Usage | None = None) -> ScriptedModel:
    """A model that answers by a function, as often as it is asked."""
    return ScriptedModel([ModelStep.respond(respond)] * 1_500, default_usage=usage)


def model(*answers: Any, usage: Usage | None = None) -> ScriptedModel:
    """A model that hands over to the other agent for ever, or answers when it is asked to."""

    def respond(call: Any) -> Any:
        is_asked = "used up" in str(call.input)
        if is_asked and answers:
            return [assistant_message(answers[0])]
        to = call.handoffs[0].tool_name
        return [function_call(to, {}, call_id=f"{to}-{len(call.input)}")]

    return scripted(respond, usage)


def swarm(*answers: Any, usage: Usage | None = None) -> Agent[Any]:
    a = Agent(name="a", model=model(*answers, usage=usage))
    b = Agent(name="b", model=model(usage=usage), handoffs=[a])
    a.handoffs.append(b)
    return a


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_a_loop_of_handoffs_is_stopped(mode: Any) -> None:
    """The result has the whole conversation; the entry agent has the last word."""
    records: list[Record] = []
    team = dig.wrap(swarm("half"), mode=mode, budget={"turns": 20}, sink=records.append)
    result = asyncio.run(Runner.run(team, "?", max_turns=100))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert (result.final_output, result.last_agent.name) == ("half", "a")
    assert len(result.raw_responses) == 21
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    assert session.result().partial
    assert session.statistics().faults == 0


def test_an_agent_that_hands_nothing_back_fails_the_request() -> None:
    records: list[Record] = []
    team = dig.wrap(swarm(), budget={"turns": 20}, sink=records.append)
    with pytest.raises(dig.BudgetExceeded, match="stopped at 20 turns, and `a` handed back no"):
        asyncio.run(Runner.run(team, "?", max_turns=100))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0
    assert session.statistics().open_turns == 0


def test_an_entry_agent_stopped_at_its_own_handoff_fails_the_request() -> None:
    """Its last turn begins with the handoff that it sent itself."""
    records: list[Record] = []
    usage = Usage(requests=1, input_tokens=100, output_tokens=10, total_tokens=110)

    def respond(call: Any) -> Any:
        names = [handoff.tool_name for handoff in call.handoffs]
        return [function_call(name, {}, call_id=f"{name}-{len(call.input)}") for name in names]

    others = [Agent(name=name, model=scripted(respond)) for name in ("billing", "refunds")]
    triage = Agent(name="triage", model=scripted(respond, usage), handoffs=[*others])
    team = dig.wrap(triage, budget={"tokens": 50}, sink=records.append)
    with pytest.raises(dig.BudgetExceeded, match="stopped at 50 tokens"):
        asyncio.run(Runner.run(team, "?"))
    dig.unwrap(team)
    (failed,) = incidents(records, "request_failed")
    assert (failed["how"], failed["event"]) == ("limit", "e1")


def test_many_requests_have_a_budget_each(crowd: int) -> None:
    team = dig.wrap(swarm("half"), budget={"turns": 4})

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(Runner.run(team, f"{n}", max_turns=50) for n in range(crowd)))

    results = asyncio.run(ask_all())
    session = dig.session_of(team)
    dig.unwrap(team)
    assert {result.final_output for result in results} == {"half"}
    assert {len(result.raw_responses) for result in results} == {5}
    assert session.statistics().partial == crowd


def test_a_stream_is_stopped_without_a_last_turn() -> None:
    records: list[Record] = []
    team = dig.wrap(swarm("half"), budget={"turns": 4}, sink=records.append)

    async def read() -> None:
        result = Runner.run_streamed(team, "?", max_turns=50)
        async for _ in result.stream_events():
            pass

    with pytest.raises(dig.BudgetExceeded, match="stopped at 4 turns"):
        asyncio.run(read())
    dig.unwrap(team)
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]


def test_tokens_are_looked_at_before_each_call_of_a_model() -> None:
    """Also within the turn of an agent that only calls tools."""
    usage = Usage(requests=1, input_tokens=90, output_tokens=10, total_tokens=100)
    records: list[Record] = []

    def outer(call: Any) -> Any:
        if "used up" in str(call.input):
            return [assistant_message("half")]
        return [function_call("ask", {"input": "?"}, call_id=f"c{len(call.input)}")]

    inner = Agent(name="inner", model=scripted(lambda call: [assistant_message("x")], usage))
    looping = scripted(outer, usage)
    tool = inner.as_tool("ask", "asks")
    team = dig.wrap(
        Agent(name="outer", model=looping, tools=[tool]), budget={"tokens": 500},
        sink=records.append,
    )  # fmt: skip
    result = asyncio.run(Runner.run(team, "?", max_turns=50))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert result.final_output == "half"
    stopped = [row for row in incidents(records) if row["stage"] == "stopped"]
    assert [row["spent"] for row in stopped] == [500]
    assert session.statistics().faults == 0
