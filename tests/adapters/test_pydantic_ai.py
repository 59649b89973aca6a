"""Pydantic AI, wrapped: what is found in a team, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, RequestUsage, UsageLimits
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import dig
from dig.errors import SettingsError
from dig.graph.records import Record

from .conformance import Failing
from .framework_gates import behind, usher
from .harness import Script, play
from .pydantic_ai_teams import (
    Watched,
    agent,
    as_tool,
    ask,
    calls,
    failing,
    notes,
    raises,
    raising,
    says,
    scenario,
    stream,
    team,
    tools,
    with_tools,
    within_one,
    words,
)
from .test_budget import incidents

FAILING = [
    Failing(scenario(failing), {"b": "ValueError: no model today"}, None),
    Failing(
        scenario(raising), {"a": "by b", "b": "ValueError: no model today"}, ("error", "b"),
    ),
    Failing(scenario(tools, within_one), {"a": "called off"}, ("limit", None)),
]  # fmt: skip


def in_background(script: Script, *answers: Any) -> Any:
    """A tool that has an agent work in the background; the first answer does not wait for it."""
    tasks = set()

    async def work() -> str:
        await asyncio.sleep(5)
        return "worked"

    b = agent(script, "b", calls("work"), says("b done"), tools=[work])

    async def begin(text: str) -> str:
        tasks.add(asyncio.create_task(b.run(text)))
        return "begun"

    async def wait() -> str:
        return str([result.output for result in await asyncio.gather(*tasks)])

    replies = calls("begin", text="x"), says("without b"), *answers
    return team(agent(script, "a", *replies, tools=[begin, wait]), b)


def early(script: Script) -> Any:
    return in_background(script, calls("wait"), says("with b"))


def never_again(script: Script) -> Any:
    return in_background(script, raises)


def twice(script: Script) -> Any:
    """The same part is given to two agents."""
    b, c = (agent(script, name, says(f"{name} done")) for name in "bc")

    def reply(messages: Any, number: int) -> Any:
        if number == 1:
            return calls("b", "c", text="rome")(messages, number)
        return says("done twice" if notes(messages) else "done")(messages, number)

    return team(agent(script, "a", reply, tools=[as_tool(b), as_tool(c)]), b, c)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_et_an_answer_before_work_in_the_background_is_done_goes_back(seed: int) -> None:
    """The note stands in the conversation, where the agent reads it."""
    watched = Watched("heal")
    outcome = play(scenario(early), watched, seed=seed)
    assert "'answer': 'with b'" in str(outcome.returned)
    assert "[monitor] Work is missing" in str(outcome.per_agent()["a"])
    assert watched.patterns[0] == "ET" and watched.healed()[0] == "reroute"
    assert watched.leaves_nothing_open()


def test_et_a_streamed_answer_cannot_go_back_and_that_is_said() -> None:
    watched = Watched("heal")
    outcome = play(scenario(early, stream), watched)
    assert "without b " in str(outcome.returned)
    assert watched.patterns[0] == "ET" and "downgraded" in watched.incidents()


def test_if_asking_again_fails_the_first_answer_stands() -> None:
    watched = Watched("heal")
    outcome = play(scenario(never_again), watched)
    assert "'answer': 'without b'" in str(outcome.returned) and not outcome.raised
    assert "bounce failed" in watched.incidents()
    assert watched.leaves_nothing_open()


@pytest.mark.parametrize(("most", "goes_back"), [(2, False), (4, True), (None, True)])
def test_an_answer_goes_back_only_while_the_run_has_requests_left(
    most: int | None, goes_back: bool
) -> None:
    async def drive(team: Any) -> Any:
        return await ask(team, usage_limits=UsageLimits(request_limit=most))

    watched = Watched("heal")
    outcome = play(scenario(early, drive), watched)
    assert not outcome.raised
    assert ("'answer': 'with b'" in str(outcome.returned)) is goes_back


def test_a_tool_is_an_agent_of_its_own_if_asked() -> None:
    """A call that the tool refuses is its error, and no agent's."""
    watched = Watched(tools=True)
    watched.must_change_nothing(scenario(with_tools))
    assert {"tool:weather", "tool:time", "tool:b", "b"} <= {*watched.ran()}
    assert watched.ends() == {"tool:time": "ToolRetryError: which one?"}
    watched.must_be_over()


@pytest.mark.parametrize(("kind", "kept"), [("tool_call", 3), ("tool_result", 3)])
def test_a_gate_may_keep_what_a_tool_is_called_with_and_what_it_returns(
    kind: str, kept: int
) -> None:
    """The tool begins, and the agent goes on, when the gate has decided."""
    gate = usher(keeps=lambda graph, event: event.type == kind, after_s=10.0)
    watched = Watched("heal", behind(gate)(), tools=True)
    outcome = play(scenario(with_tools), watched)
    assert outcome.elapsed == play(scenario(with_tools)).elapsed + 10 * kept
    assert {*watched.incidents()} == {"waits", "stack trace"}  # of the tool that raises once
    watched.must_be_over()


def test_the_same_again_and_again_is_a_loop_and_a_note_ends_it() -> None:
    def build(script: Script) -> Any:
        b = agent(script, "b", says("b done"))

        def reply(messages: Any, number: int) -> Any:
            stops = notes(messages) or number > 30
            return (says("enough") if stops else calls("b", text="x"))(messages, number)

        return team(agent(script, "a", reply, tools=[as_tool(b)]), b)

    watched = Watched("heal")
    outcome = play(scenario(build, name="loop"), watched)
    assert "LOOP" in watched.patterns and "'answer': 'enough'" in str(outcome.returned)
    assert outcome.log.count(("a", "ends", "")) < 30
    assert watched.leaves_nothing_open()


def test_an_agent_alone_and_agents_of_a_list_go_by_their_names() -> None:
    for build, names in ((lambda it: it, ["a"]), (lambda it: [it], ["a"])):
        it = dig.wrap(build(agent(Script(), "a", says("x"))))
        assert [*dig.session_of(it).monitor.graph.agents] == names
        dig.unwrap(it)


# --- budgets ---


def asking(text: str, *, per_answer: int = 1) -> Callable[[Any, Any], ModelResponse]:
    """A model that asks the helper for ever, or answers when the budget is used up."""

    def respond(messages: Any, info: Any) -> ModelResponse:
        usage = RequestUsage(input_tokens=90, output_tokens=10)
        spoken = [said for _, said in words(messages)]
        if text and any("used up" in said for said in spoken):
            return ModelResponse(parts=[TextPart(text)], usage=usage)
        ids = (f"c{len(spoken)}-{n}" for n in range(per_answer))
        parts = [ToolCallPart("helper", {"text": "?"}, tool_call_id=id) for id in ids]
        return ModelResponse(parts=parts, usage=usage)

    return respond


def pair(text: str, **options: Any) -> list[Agent[Any, Any]]:
    usage = RequestUsage(input_tokens=90, output_tokens=10)
    reply = ModelResponse(parts=[TextPart("x")], usage=usage)
    helper = Agent(FunctionModel(lambda messages, info: reply), name="helper")
    leader = FunctionModel(asking(text, **options))
    return [Agent(leader, name="leader", tools=[as_tool(helper)]), helper]


def spending(script: Script) -> Any:
    """An agent that asks another one again and again, until it is told, or eight times."""
    b = agent(script, "b", says("x"))

    def reply(messages: Any, number: int) -> Any:
        stops = number > 8 or "used up" in str(words(messages))
        return (says("half") if stops else calls("b", text="?"))(messages, number)

    return team(agent(script, "a", reply, tools=[as_tool(b)]), b)


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("per_answer", [1, 3])
def test_a_loop_of_calls_is_stopped_and_the_entry_agent_hands_back(
    per_answer: int, mode: Any
) -> None:
    """Also if several calls at once are refused: the agent has one last request."""
    records: list[Record] = []
    agents = pair("half", per_answer=per_answer)
    wrapped = dig.wrap(agents, mode=mode, budget={"turns": 20}, sink=records.append)
    result = asyncio.run(agents[0].run("?"))
    session = dig.session_of(wrapped)
    dig.unwrap(wrapped)
    assert result.output == "half"
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    assert session.result().partial
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


def test_an_agent_that_hands_nothing_back_fails_the_request() -> None:
    records: list[Record] = []
    agents = pair("")
    wrapped = dig.wrap(agents, budget={"turns": 20}, sink=records.append)
    with pytest.raises(dig.BudgetExceeded, match="20 turns, and `leader` handed back no") as caught:
        asyncio.run(agents[0].run("?", usage_limits=UsageLimits(request_limit=None)))
    session = dig.session_of(wrapped)
    dig.unwrap(wrapped)
    assert "x" in caught.value.partial
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


@pytest.mark.timeout(900)  # on a busy machine
def test_many_requests_have_a_budget_each(crowd: int) -> None:
    agents = pair("half")
    wrapped = dig.wrap(agents, budget={"turns": 4})

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(agents[0].run(f"{n}") for n in range(crowd)))

    results = asyncio.run(ask_all())
    session = dig.session_of(wrapped)
    dig.unwrap(wrapped)
    assert {result.output for result in results} == {"half"}
    assert session.statistics().partial == crowd


def test_tokens_are_looked_at_before_each_request_to_a_model() -> None:
    records: list[Record] = []
    agents = pair("half")
    wrapped = dig.wrap(agents, budget={"tokens": 500}, sink=records.append)
    result = asyncio.run(agents[0].run("?"))
    dig.unwrap(wrapped)
    assert result.output == "half"
    stopped = [row for row in incidents(records) if row["stage"] == "stopped"]
    assert [row["spent"] for row in stopped] == [500]


def test_an_agent_that_stands_in_the_team_twice_is_refused() -> None:
    it = agent(Script(), "a", says("x"))
    with pytest.raises(SettingsError, match="'y' stands in the team under two names"):
        dig.wrap({"x": it, "y": it})
