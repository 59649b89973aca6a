"""LlamaIndex, wrapped: what is found in a team, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.workflow import Context

import dig
from dig.errors import SettingsError
from dig.graph.records import Emit, End, Record

from .conformance import Failing
from .framework_gates import behind, results, usher
from .harness import Script, play
from .llama_index_teams import (
    MARKS,
    Watched,
    acting,
    agent,
    alone,
    as_tool,
    ask,
    at_once,
    back_and_forth,
    calls,
    cancel_run,
    entry,
    failing,
    few_steps,
    handing,
    hands,
    notes,
    raises,
    raising,
    returning,
    says,
    scenario,
    shown,
    stream,
    talk,
    talk_again,
    thinking,
    to_two,
    with_tools,
    without_question,
    words,
    workflow,
)
from .test_budget import incidents

pytestmark = MARKS

NO_MODEL = "ValueError: no model today"
FAILING = [
    Failing(scenario(failing), {"b": NO_MODEL}, None),
    Failing(scenario(raising), {"b": NO_MODEL}, ("error", "b")),
    Failing(scenario(raising, stream), {"b": NO_MODEL}, ("error", "b")),
    Failing(scenario(handing, few_steps), {"b": "called off"}, ("limit", None), never=("c",)),
    Failing(
        scenario(handing, without_question), {"a": "ValueError: Must provide either user_msg"},
        ("error", "a"), never=("b", "c"),
    ),
    Failing(
        scenario(with_tools), {"tool:broken": "ValueError: no map of Rome"}, None,
        options={"tools": True},
    ),
]  # fmt: skip


def in_background(script: Script, *answers: Any, says_first: Any = None, **more: Any) -> Any:
    """A tool that has an agent work in the background; the first answer does not wait for it."""
    handlers: list[Any] = []

    async def work() -> str:
        await asyncio.sleep(5)
        return "worked"

    b = agent(script, "b", calls("work"), says("b done"), tools=[work])

    async def begin(text: str) -> str:
        handlers.append(b.run(user_msg=text))
        return "begun"

    async def wait() -> str:
        return str([str(await handler) for handler in handlers])

    replies = calls("begin", text="x"), says_first or says("without b"), *answers
    return [agent(script, "a", *replies, tools=[begin, wait], **more), b]


def early(script: Script) -> Any:
    return in_background(script, calls("wait"), says("with b"))


def early_thought(script: Script) -> Any:
    """The same by agents that write what they want to call."""
    action = "Thought: I must.\nAction: {}\nAction Input: {}"
    team = in_background(
        script, says(action.format("wait", "{}")), says("Thought: Now.\nAnswer: with b"),
        says_first=says("Thought: Enough.\nAnswer: without b"), kind=ReActAgent,
    )  # fmt: skip
    model: Any = team[0].llm
    model._replies = [says(action.format("begin", '{"text": "x"}')), *model._replies[1:]]
    return team


def early_at_first_choice(script: Script) -> Any:
    """The same by an agent that must call a tool first."""
    return in_background(script, calls("wait"), says("with b"), initial_tool_choice="begin")


def never_again(script: Script) -> Any:
    return in_background(script, raises)


def working_on(script: Script) -> Any:
    """After its answer has come back the agent works and works."""
    return in_background(script, calls("wait"))


def twice(script: Script) -> Any:
    """The same part is given to two agents."""
    b, c = (agent(script, name, says(f"{name} done")) for name in "bc")

    def reply(messages: Any, number: int) -> Any:
        if number == 1:
            return calls("b", "c", text="rome")(messages, number)
        return says("done twice" if notes(messages) else "done")(messages, number)

    return [agent(script, "a", reply, tools=[as_tool(b), as_tool(c)]), b, c]


@pytest.mark.parametrize("build", [early, early_thought, early_at_first_choice])
@pytest.mark.parametrize("seed", [0, 1])
def test_et_an_answer_before_work_in_the_background_is_done_goes_back(
    build: Any, seed: int
) -> None:
    """The agent reads the note once, after its own early words."""
    watched = Watched("heal")
    outcome = play(scenario(build), watched, seed=seed)
    assert "'answer': 'with b'" in str(outcome.returned)
    assert watched.patterns[0] == "ET" and watched.healed()[0] == "reroute"
    assert watched.leaves_nothing_open()
    seen = [text for what, text in outcome.per_agent()["a"] if what == "sees"]
    assert not any("[monitor]" in text for text in seen[:2])
    assert all(text.count("Work is missing") == 1 for text in seen[2:])
    assert [number for number, text in enumerate(seen) if "'must', 'begin'" in text] == (
        [0] if build is early_at_first_choice else []
    )
    if build is not early_at_first_choice:
        assert seen[2].index("without b") < seen[2].index("[monitor] Work is missing")
    assert all(text.count("What now?") == 1 for text in seen)


def test_et_the_early_answer_stands_in_the_stream_and_the_result_is_the_complete_one() -> None:
    watched = Watched("heal")
    outcome = play(scenario(early, stream), watched)
    returned = str(outcome.returned)
    assert "without " in returned and "'answer': 'with b'" in returned
    assert returned.count("'AgentOutput', None, 'a'") == 4  # the early one, too


def test_et_the_note_stays_in_the_memory_of_the_conversation() -> None:
    """So does the early answer: the agent sees later what it has answered to."""

    async def drive(team: Any) -> Any:
        context = Context(entry(team))
        result = await entry(team).run(user_msg="What now?", ctx=context)
        memory = await context.store.get("memory")
        return [shown(result), [role for role, _ in words(await memory.aget())]]

    outcome = play(scenario(early, drive), Watched("heal"))
    roles = "['user', 'assistant', 'tool', 'assistant', 'user', 'assistant', 'tool', 'assistant']"
    assert roles in str(outcome.returned)


@pytest.mark.parametrize("build", [never_again, working_on])
def test_if_asking_again_brings_no_answer_the_first_one_stands(build: Any) -> None:
    """By an error, or since LlamaIndex's limit of steps is near."""
    watched = Watched("heal")
    outcome = play(scenario(build), watched)
    assert "'answer': 'without b'" in str(outcome.returned) and not outcome.raised
    assert "bounce failed" in watched.incidents()
    assert watched.leaves_nothing_open()


@pytest.mark.parametrize(("most", "answer"), [(3, "without b"), (4, "without b"), (5, "with b")])
def test_asking_again_counts_against_the_limit_of_steps(most: int, answer: str) -> None:
    """An answer goes back only while there is a step for another one."""

    async def drive(team: Any) -> Any:
        return await ask(team, max_iterations=most)

    watched = Watched("heal")
    outcome = play(scenario(early, drive), watched)
    assert f"'answer': '{answer}'" in str(outcome.returned) and not outcome.raised


def test_a_handoff_is_a_message_with_its_reason_and_the_words() -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(handing))
    assert watched.ran() == ["a", "b", "c"]
    said = [(row.payload, row.to) for row in watched.rows(Emit) if row.type == "handoff"]
    assert said == [
        ({"handoff": "b", "with": "for you"}, ("b",)),
        ({"handoff": "c", "said": "I did my part.", "with": "for you"}, ("c",)),
    ]
    watched.must_be_over()


def test_et_a_second_handoff_of_a_response_is_lost_work() -> None:
    """LlamaIndex gives the floor to one agent only, and tells the model that both work.

    In which order it does so differs from run to run in 0.14.22, without a monitor as well.
    """
    watched = Watched()
    assert play(scenario(to_two), watched).returned == play(scenario(to_two)).returned
    assert watched.patterns == ["ET"] and watched.ran() == ["a", "c"]


def test_finalize_of_who_hands_over_is_no_answer() -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(handing))
    assert watched.answers() == ["all done"]


def test_the_answer_of_a_react_agent_has_no_thoughts() -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(thinking))
    assert watched.answers() == ["all done"] and watched.ran() == ["a", "b"]


@pytest.mark.parametrize("drive", [talk, talk_again])
def test_a_conversation_goes_on_with_who_had_the_floor_last(drive: Any) -> None:
    """Also if it was stored in between; then nothing but an incident says who was asked."""
    watched = Watched()
    watched.must_change_nothing(scenario(handing, drive))
    assert watched.ran() == ["a", "b", "c", "c"]
    assert watched.incidents() == (["never ran"] if drive is talk_again else [])
    watched.must_be_over()


def test_requests_that_overlap_do_not_mix_in_an_agent_that_comes_back() -> None:
    """What an instance remembers belongs to one request, until that is answered."""
    watched = Watched()
    watched.must_change_nothing(scenario(back_and_forth, at_once))
    assert watched.patterns == [] and {"a", "a#2", "a#3"} <= {*watched.ran()}
    watched.must_be_over()


def test_what_a_tool_returns_directly_is_the_answer() -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(returning))
    assert watched.answers() == ["pen is a word"]


def test_a_cancelled_run_is_called_off() -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(handing, cancel_run))
    assert watched.ends() == {"a": "called off"} and watched.failed() == []
    watched.must_be_over()


def test_a_tool_is_an_agent_of_its_own_if_asked() -> None:
    """What a tool raises is its error, and no agent's; a tool that is not there has no turn."""
    watched = Watched(tools=True)
    watched.must_change_nothing(scenario(with_tools))
    assert {"tool:weather", "tool:broken", "tool:b", "b"} <= {*watched.ran()}
    assert watched.ends() == {"tool:broken": "ValueError: no map of Rome"}
    watched.must_be_over()


def test_code_that_an_agent_executes_is_a_tool() -> None:
    watched = Watched(tools=True)
    watched.must_change_nothing(scenario(acting))
    assert watched.ran() == ["a", "tool:execute", "a"] and watched.answers() == ["It is 2."]


@pytest.mark.parametrize("keeps", [results])
def test_a_gate_keeps_the_result_of_a_tool(keeps: Any) -> None:
    watched = Watched("heal", behind(usher("Careful.", keeps=keeps))(), tools=True)
    outcome = play(scenario(acting), watched)
    assert "[monitor] Careful." in str(outcome.per_agent()["a"])
    watched.must_be_over()


def test_tools_in_threads_know_their_turn() -> None:
    """For real: a tool that is no coroutine function runs in a thread, and asks an agent there."""
    seen: list[Any] = []

    def build() -> Any:
        script = Script()
        b = agent(script, "b", says("b done"))

        def look(text: str) -> str:
            async def run() -> Any:
                return await b.run(user_msg=text)

            seen.append(str(asyncio.run(run())))
            return str(seen[-1])

        return [agent(script, "a", calls("look", text="x"), says("done"), tools=[look]), b]

    records: list[Record] = []
    team = dig.wrap(build(), sink=records.append)

    async def main() -> Any:
        return await team[0].run(user_msg="?")

    assert str(asyncio.run(main())) == "done"
    session = dig.session_of(team)
    dig.unwrap(team)
    assert seen == ["b done"] and session.statistics().requests == 1


def test_the_same_again_and_again_is_a_loop_and_a_note_ends_it() -> None:
    """Two that hand over to each other."""

    def build(script: Script) -> Any:
        def reply(messages: Any, number: int) -> Any:
            return (says("enough") if notes(messages) else hands("a"))(messages, number)

        return workflow(agent(script, "a", hands("b")), agent(script, "b", reply))

    async def drive(team: Any) -> Any:
        return await ask(team, max_iterations=100)

    alone = Watched()
    play(scenario(build, drive, "loop"), alone)
    assert {"LOOP", "LIVELOCK"} <= {*alone.patterns} and alone.failed() == [("limit", None)]
    watched = Watched("heal")
    outcome = play(scenario(build, drive, "loop"), watched)
    assert "LOOP" in watched.patterns and "'answer': 'enough'" in str(outcome.returned)
    assert outcome.log.count(("a", "ends", "")) < 30
    assert watched.leaves_nothing_open()


def test_agents_go_by_their_names_or_by_those_that_are_given() -> None:
    for build, names in (
        (lambda it: it, ["a"]),
        (lambda it: [it], ["a"]),
        (lambda it: {"x": it}, ["x"]),
        (lambda it: workflow(it), ["a"]),
        (lambda it: [workflow(it), it], ["a"]),
    ):
        it = dig.wrap(build(alone(Script())))
        assert [*dig.session_of(it).monitor.graph.agents] == names
        dig.unwrap(it)


def test_an_agent_that_stands_in_the_team_twice_is_refused() -> None:
    it = alone(Script())
    with pytest.raises(SettingsError, match="'y' stands in the team under two names"):
        dig.wrap({"x": it, "y": it})


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_a_model_of_pydantic_has_its_own_methods_back(mode: Any) -> None:
    """Its fields, and what is written of it, are the same while it is wrapped, too."""
    it = alone(Script())
    before, fields = {**vars(it)}, it.model_dump(exclude={"llm"})
    wrapped = dig.wrap(it, mode=mode)
    assert it.model_dump(exclude={"llm"}) == fields
    dig.unwrap(wrapped)
    assert vars(it) == before


# --- budgets ---


def spending(script: Script) -> Any:
    """An agent that asks another one again and again, until it is told, or eight times."""
    b = agent(script, "b", says("x"))

    def reply(messages: Any, number: int) -> Any:
        stops = number > 8 or "used up" in str(words(messages))
        return (says("half") if stops else calls("b", text="?"))(messages, number)

    return [agent(script, "a", reply, tools=[as_tool(b)]), b]


def hand_on(script: Script) -> Any:
    """Two that hand over to each other, until the first one hears of the end of the budget."""

    def reply(messages: Any, number: int) -> Any:
        stops = number > 8 or "used up" in str(words(messages))
        return (says("half") if stops else hands("b"))(messages, number)

    return workflow(agent(script, "a", reply), agent(script, "b", hands("a")))


USAGE = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}


def asking(text: str, *, per_answer: int = 1) -> Any:
    """A model that asks the helper for ever, or answers when the budget is used up."""

    def reply(messages: Any, number: int) -> Any:
        if text and "used up" in str(words(messages)):
            return says(text)(messages, number)
        return calls(*["helper"] * per_answer, text="?")(messages, number)

    return reply


def pair(text: str, **options: Any) -> list[Any]:
    script = Script()
    helper = agent(script, "helper", says("x"), usage=USAGE)
    return [agent(script, "leader", asking(text, **options), tools=[as_tool(helper)], usage=USAGE),
            helper]  # fmt: skip


def hand_round(text: str) -> Any:
    """Three that hand over to each other for ever; the first knows what to do with a budget."""
    script = Script()

    def reply(messages: Sequence[ChatMessage], number: int) -> Any:
        is_told = text and "used up" in str(words(messages))
        return (says(text) if is_told else hands("b", f"{number}"))(messages, number)

    return workflow(
        agent(script, "a", reply, system_prompt="You are a."),
        agent(script, "b", lambda messages, number: hands("c", f"{number}")(messages, number)),
        agent(script, "c", lambda messages, number: hands("a", f"{number}")(messages, number),
              system_prompt="You are c."),
    )  # fmt: skip


async def run(team: Any, question: str = "?") -> Any:
    return await entry(team).run(user_msg=question, max_iterations=100)


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("per_answer", [1, 3])
def test_a_loop_of_calls_is_stopped_and_the_entry_agent_hands_back(
    per_answer: int, mode: Any
) -> None:
    """Also if several calls at once are refused: the agent has one last step."""
    records: list[Record] = []
    wrapped = dig.wrap(
        pair("half", per_answer=per_answer), mode=mode, budget={"turns": 20}, sink=records.append
    )
    result = asyncio.run(run(wrapped))
    session = dig.session_of(wrapped)
    dig.unwrap(wrapped)
    assert str(result) == "half"
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    assert session.result().partial
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("turns", [1, 2, 3, 20])
def test_a_loop_of_handoffs_is_stopped_and_the_first_agent_hands_back(
    turns: int, mode: Any
) -> None:
    """Whoever had the floor, the first agent has it after the last turn, with its own words."""
    records: list[Record] = []
    wrapped = dig.wrap(hand_round("half"), mode=mode, budget={"turns": turns}, sink=records.append)

    async def drive() -> Any:
        context = Context(wrapped)
        handler = wrapped.run(user_msg="?", max_iterations=100, ctx=context)
        result = await handler
        return result, await context.store.get("current_agent_name")

    result, floor = asyncio.run(drive())
    session = dig.session_of(wrapped)
    dig.unwrap(wrapped)
    assert str(result) == "half" and floor == result.current_agent_name == "a"
    assert [row["stage"] for row in incidents(records)][-2:] == ["stopped", "partial"]
    assert session.statistics().turns == turns + 1
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


@pytest.mark.parametrize(
    ("make", "who"), [(lambda: pair(""), "leader"), (lambda: hand_round(""), "a")]
)
def test_an_agent_that_hands_nothing_back_fails_the_request(make: Any, who: str) -> None:
    records: list[Record] = []
    wrapped = dig.wrap(make(), budget={"turns": 20}, sink=records.append)
    with pytest.raises(dig.BudgetExceeded, match=f"20 turns, and `{who}` handed back no") as caught:
        asyncio.run(run(wrapped))
    session = dig.session_of(wrapped)
    dig.unwrap(wrapped)
    assert caught.value.partial
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


@pytest.mark.timeout(600)  # LlamaIndex takes some 30 ms of processor time for each request
@pytest.mark.parametrize("make", [lambda: pair("half"), lambda: hand_round("half")])
def test_many_requests_have_a_budget_each(make: Any, crowd: int) -> None:
    wrapped = dig.wrap(make(), budget={"turns": 2})

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(run(wrapped, f"{n}") for n in range(crowd)))

    results = asyncio.run(ask_all())
    session = dig.session_of(wrapped)
    dig.unwrap(wrapped)
    assert {str(result) for result in results} == {"half"}
    assert session.statistics().partial == crowd and session.statistics().requests == crowd


def test_tokens_are_looked_at_before_each_step() -> None:
    records: list[Record] = []
    wrapped = dig.wrap(pair("half"), budget={"tokens": 500}, sink=records.append)
    result = asyncio.run(run(wrapped))
    dig.unwrap(wrapped)
    assert str(result) == "half"
    stopped = [row for row in incidents(records) if row["stage"] == "stopped"]
    assert [row["spent"] for row in stopped] == [500]
    assert any(row.usage for row in records if isinstance(row, End))
