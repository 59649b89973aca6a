"""Google ADK, wrapped: what is found in a team, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, RunConfig
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.apps import App
from google.adk.events import Event
from google.adk.runners import InMemoryRunner, Runner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

import dig
from dig.adapters.google_adk import runs
from dig.errors import SettingsError
from dig.graph.records import Emit, Record, Start

from .conformance import REQUESTS, Failing, Shown
from .google_adk_teams import (
    OLD_WAYS,
    Watched,
    agent,
    alone,
    answer_of,
    ask,
    asks,
    blocked,
    calls,
    failing,
    hands,
    loop,
    notes,
    raises,
    raising,
    raising_in_line,
    runner_of,
    says,
    scenario,
    sequence,
    single_turn,
    stream,
    task,
    tools,
    transfers,
    with_tools,
    within_one,
    words,
    workflow,
)
from .harness import AtOnce, Scenario, Script, play
from .test_budget import incidents

pytestmark = OLD_WAYS

ERROR = "ValueError: no model today"

FAILING = [
    Failing(scenario(failing), {"b": ERROR}, None),
    Failing(scenario(raising), {"a": "by b", "b": ERROR}, ("error", "b")),
    Failing(scenario(raising_in_line), {"line": "by b", "b": ERROR}, ("error", "b")),
    Failing(scenario(blocked), {"a": "RuntimeError: SAFETY: not allowed"}, ("error", "a")),
    Failing(scenario(tools, within_one), {"a": "called off"}, ("limit", None)),
]  # fmt: skip


def in_background(script: Script, *answers: Any) -> Any:
    """A tool that has an agent work in the background; the first answer does not wait for it."""
    tasks = set()

    async def work() -> str:
        await asyncio.sleep(5)
        return "worked"

    b = agent(script, "b", calls("work"), says("b done"), tools=[work])

    async def start(text: str) -> str:
        tasks.add(asyncio.create_task(ask(b, text)))
        return "begun"

    async def wait() -> str:
        return str([len(one["events"]) for one in await asyncio.gather(*tasks)])

    replies = calls("start", text="x"), says("without b"), *answers
    return agent(script, "a", *replies, tools=[start, wait])


def early(script: Script) -> Any:
    return in_background(script, calls("wait"), says("with b"))


def never_again(script: Script) -> Any:
    return in_background(script, raises)


def twice(script: Script) -> Any:
    """The same part is given to two agents."""
    b, c = (agent(script, name, says(f"{name} done")) for name in "bc")

    def reply(contents: Any, number: int) -> Any:
        if number == 1:
            return asks("b", "c", text="rome")(contents, number)
        return says("done twice" if notes(contents) else "done")(contents, number)

    return agent(script, "a", reply, tools=[AgentTool(b), AgentTool(c)])


def ping_pong(script: Script) -> Any:
    """Two that hand over to each other until one of them is told that it goes round."""

    def pass_to(other: str) -> Any:
        def reply(contents: Any, number: int) -> Any:
            return (says("solved") if notes(contents) else hands(other))(contents, number)

        return reply

    b = agent(script, "b", pass_to("a"))
    return agent(script, "a", pass_to("b"), sub_agents=[b])


async def ask_at_most(team: Any) -> Any:
    return await ask(team, run_config=RunConfig(max_llm_calls=10))


async def stream_at_most(team: Any) -> Any:
    mode = RunConfig(max_llm_calls=10, streaming_mode="sse")
    return await ask(team, run_config=mode)


def crowded(shown: Shown) -> Scenario:
    """`lead` asks until it is told, for some requests; for some, a tool of `builder` hangs."""

    def build(script: Script) -> Any:
        def number_of(contents: Any) -> int:
            number = int(re.findall(r"request (\d+)", str(words(contents)))[0])
            shown.append((number, dig.notes_about()))
            return number

        async def work(secs: int) -> str:
            await asyncio.sleep(secs)
            return "worked"

        def lead(contents: Any, n: int) -> Any:
            number, asked = number_of(contents), str(words(contents)).count("'model', ('builder'")
            if notes(contents) or asked >= (12 if number % 10 == 0 else 1):
                return says(f"request {number} is done")(contents, n)
            return asks("builder", text=f"request {number}")(contents, n)

        def builder(contents: Any, n: int) -> Any:
            number = number_of(contents)
            if "worked" in str(words(contents)):
                return says("built")(contents, n)
            return calls("work", secs=30 if number % 10 == 5 else number % 7)(contents, n)

        b = agent(script, "builder", builder, tools=[work])
        return agent(script, "lead", lead, tools=[AgentTool(b)])

    async def drive(team: Any) -> Any:
        return await asyncio.gather(*(ask(team, f"request {n}") for n in range(REQUESTS)))

    return scenario(build, drive, "crowd")


@pytest.fixture(autouse=True)
def alone_in_the_process() -> None:
    """No team of an earlier test is wrapped any more."""
    for team in [*runs.TEAMS]:
        runs.remove(team)


# --- what is found, and healed ---


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_et_an_answer_before_work_in_the_background_is_done_goes_back(seed: int) -> None:
    """The model sees its answer and the note; caller and session see nothing of either."""
    watched = Watched("heal")
    outcome = play(scenario(early), watched, seed=seed)
    assert answer_of(outcome) == "with b"
    assert "without b" not in str(outcome.returned) and "monitor" not in str(outcome.returned)
    seen = str(outcome.per_agent()["a"])
    assert re.search(r"'without b'\), \('user', .{1,3}monitor\] Work is missing", seen)
    assert watched.patterns[0] == "ET" and watched.healed()[0] == "reroute"
    assert watched.leaves_nothing_open()


def test_et_a_streamed_answer_cannot_go_back_and_that_is_said() -> None:
    watched = Watched("heal")
    outcome = play(scenario(early, stream), watched)
    assert answer_of(outcome) == "without b"
    assert watched.patterns[0] == "ET" and "downgraded" in watched.incidents()


def test_if_asking_again_fails_the_first_answer_stands() -> None:
    watched = Watched("heal")
    outcome = play(scenario(never_again), watched)
    assert answer_of(outcome) == "without b" and not outcome.raised
    assert "bounce failed" in watched.incidents()
    assert watched.leaves_nothing_open()


def test_the_same_again_and_again_is_a_loop_and_a_note_ends_it() -> None:
    def build(script: Script) -> Any:
        b = agent(script, "b", says("b done"))

        def reply(contents: Any, number: int) -> Any:
            stops = notes(contents) or number > 30
            return (says("enough") if stops else asks("b", text="x"))(contents, number)

        return agent(script, "a", reply, tools=[AgentTool(b)])

    watched = Watched("heal")
    outcome = play(scenario(build, name="loop"), watched)
    assert "LOOP" in watched.patterns and answer_of(outcome) == "enough"
    assert outcome.log.count(("a", "ends", "")) < 30
    assert watched.leaves_nothing_open()


def test_a_tool_is_an_agent_of_its_own_if_asked() -> None:
    watched = Watched(tools=True)
    watched.must_change_nothing(scenario(with_tools))
    assert {*watched.ran()} == {"a", "b", "tool:weather", "tool:time"}
    watched.must_be_over()


# --- agents, and what only runs others ---


def events_of(watched: Any) -> list[tuple[str, Any, Any]]:
    """Who said what to whom, without continuations and the answer."""
    agents = {row.activation: row.agent for row in watched.rows(Start)}
    said = [row for row in watched.rows(Emit) if row.type != "notice" and not row.final]
    return [(agents.get(row.by or "", ""), row.payload, row.to[0]) for row in said]


def test_a_transfer_is_a_handover_of_one_request_and_words_go_with_it() -> None:
    """Its target runs beside the first agent, which ADK does not call any more."""
    watched = Watched()
    play(scenario(transfers), watched)
    assert events_of(watched) == [
        ("", "What now?", "a"), ("a", "who?", "h"), ("h", "h done", "a"),
        ("a", {"handoff": "b"}, "b"), ("b", {"handoff": "c", "said": "You know more."}, "c"),
    ]  # fmt: skip
    assert watched.session.statistics().requests == 1 and watched.answers() == ["c done"]


def test_a_silent_transfer_passes_the_request_on() -> None:
    def build(script: Script) -> Any:
        return agent(
            script, "a", hands("b"), sub_agents=[agent(script, "b", says("b done"))]
        )  # fmt: skip

    watched = Watched()
    play(scenario(build), watched)
    assert events_of(watched) == [("", "What now?", "a")] and watched.answers() == ["b done"]


def test_an_agent_as_a_tool_is_a_call_though_it_has_a_session_of_its_own() -> None:
    watched = Watched()
    play(scenario(tools), watched)
    assert watched.session.statistics().requests == 1
    assert ("a", "both", "b") in events_of(watched) and ("b", "b done", "a") in events_of(watched)


def test_sub_agents_that_work_in_the_same_session_are_called_too() -> None:
    for build in (single_turn, task):
        watched = Watched()
        play(scenario(build), watched)
        callers = [(by, to) for by, _, to in events_of(watched)]
        assert callers == [("", "a"), ("a", "b"), ("b", "a")], build
        assert watched.answers() == ["all done"]


def test_only_the_root_of_what_runs_others_stands_in_the_trace() -> None:
    """`both`, inside of `line`, and functions and joins of a workflow are no agents."""
    for build, names in (
        (sequence, {"line", "first", "x", "y", "last", "z"}),
        (workflow, {"flow", "x", "y", "last"}),
        (loop, {"rounds", "writer", "critic"}),
    ):
        watched = Watched()
        play(scenario(build), watched)
        assert {*watched.ran()} == names and {*watched.session.monitor.graph.agents} == names
        assert watched.session.statistics().requests == 1


def test_agents_are_asked_what_they_can_see() -> None:
    """After a sequence's first agent, two beside each other: none is asked what the other said."""
    watched = Watched()
    play(scenario(sequence), watched, seed=1)
    asked = {to: payload for by, payload, to in events_of(watched) if by == "line"}
    assert asked["first"] == "What now?" and asked["x"] == asked["y"] == "first done"
    assert asked["last"] in ("x done", "y done") and watched.answers() == ["z done"]


def test_lockstep_a_call_and_its_result_stand_in_the_session_before_the_next_step() -> None:
    """No event is read ahead: ADK drops calls whose results it does not find in the session."""
    watched = Watched()
    outcome = watched.must_change_nothing(scenario(transfers))
    assert "('h', {'result': 'h done'})" in str(outcome.log)


def test_agents_are_pydantic_models_and_copies_of_them_are_watched() -> None:
    """ADK copies an agent for a workflow's node; nothing is put into the agents themselves."""
    it = agent(Script(), "a", says("x"))
    before = dict(vars(it))
    with pytest.raises(ValueError, match="run_async"):
        it.run_async = lambda ctx: None
    wrapped = dig.wrap(it)
    assert vars(it) == before and it.clone() is not it
    original = vars(BaseAgent)["run_async"]
    dig.unwrap(wrapped)
    assert vars(it) == before and vars(BaseAgent)["run_async"] is not original


def test_two_teams_are_watched_apart_and_the_last_leaves_nothing_behind() -> None:
    methods = vars(BaseAgent)["run_async"], vars(Runner)["run_async"], vars(Runner)["run_live"]
    first, second = (dig.wrap(alone(AtOnce())) for _ in range(2))
    sessions = dig.session_of(first), dig.session_of(second)
    asyncio.run(ask(first))
    dig.unwrap(first)
    asyncio.run(ask(second))
    dig.unwrap(second)
    assert [session.statistics().requests for session in sessions] == [1, 1]
    assert methods == (
        vars(BaseAgent)["run_async"], vars(Runner)["run_async"], vars(Runner)["run_live"]
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["agent", "app", "runner"])
def test_a_team_is_an_agent_or_an_app_or_a_runner(kind: str) -> None:
    it = tools(AtOnce())
    runner = InMemoryRunner(app=App(name="team", root_agent=it))
    wrapped = dig.wrap({"agent": it, "app": runner.app, "runner": runner}[kind])
    asyncio.run(ask(runner))
    graph = dig.session_of(wrapped).monitor.graph
    assert {*graph.agents} == {"a", "b", "c", "outer", "inner"}
    assert dig.session_of(wrapped).statistics().turns == 5
    dig.unwrap(wrapped)


@pytest.mark.parametrize("kind", [list, tuple, lambda agents: {"a": agents[0]}])
def test_several_agents_are_refused_with_what_to_do(kind: Any) -> None:
    """As plain objects they would show nothing."""
    with pytest.raises(SettingsError, match=r"no team of google.adk: give dig.wrap the root agent"):
        dig.wrap(kind([alone(Script())]))


def test_run_live_is_refused_by_name_and_goes_on_unwrapped() -> None:
    """Of a wrapped team only."""
    it = alone(Script())
    runner = InMemoryRunner(agent=it)

    async def talk() -> None:
        place = {"user_id": "u", "session_id": "none"}
        async for _ in runner.run_live(**place, live_request_queue=LiveRequestQueue()):
            pass

    dig.wrap(it)
    with pytest.raises(SettingsError, match="run_live is not watched"):
        asyncio.run(talk())
    dig.unwrap(it)
    with pytest.raises(ValueError, match="not found"):
        asyncio.run(talk())


def test_the_synchronous_way_in_is_watched() -> None:
    it = dig.wrap(tools(AtOnce()))
    runner = runner_of(it)
    place = {"app_name": runner.app_name, "user_id": "u"}
    session = asyncio.run(runner.session_service.create_session(**place))
    events = [*runner.run(
        user_id="u", session_id=session.id, new_message=types.UserContent("x")
    )]  # fmt: skip
    assert events[-1].content.parts[0].text == "all done"
    assert dig.session_of(it).statistics().turns == 5
    dig.unwrap(it)


# --- budgets ---


def is_told(contents: Any) -> bool:
    return "used up" in str(words(contents))


def pair(text: str, per_answer: int = 1, script: Script | None = None) -> Any:
    """A leader that asks a helper for ever, or answers when the budget is used up."""
    script = script or AtOnce()

    def lead(contents: Any, number: int) -> Any:
        if text and is_told(contents):
            return says(text)(contents, number)
        return asks(*["helper"] * per_answer, text="?")(contents, number)

    return agent(
        script, "leader", lead, tools=[AgentTool(agent(script, "helper", says("x")))]
    )  # fmt: skip


def round_and_round(text: str, script: Script | None = None) -> Any:
    """Two that hand over to each other; the first one may be told to stop."""
    script = script or AtOnce()

    def lead(contents: Any, number: int) -> Any:
        return (says(text) if text and is_told(contents) else hands("helper"))(contents, number)

    return agent(
        script, "leader", lead, sub_agents=[agent(script, "helper", hands("leader"))]
    )  # fmt: skip


def spending(script: Script) -> Any:
    """An agent that asks another one again and again, until it is told, or eight times."""

    def reply(contents: Any, number: int) -> Any:
        stops = number > 8 or is_told(contents)
        return (says("half") if stops else asks("b", text="?"))(contents, number)

    return agent(script, "a", reply, tools=[AgentTool(agent(script, "b", says("x")))])


def in_turn(script: Script) -> Any:
    """A leader and a helper, whose model says more each time."""

    def lead(contents: Any, number: int) -> Any:
        stops = number > 8 or is_told(contents)
        return (says("half") if stops else hands("b"))(contents, number)

    return agent(script, "a", lead, sub_agents=[agent(script, "b", hands("a"))])


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize(
    "build", [pair, partial(pair, per_answer=3), round_and_round], ids=["calls", "three", "hands"]
)
def test_a_loop_is_stopped_after_twenty_turns_and_the_entry_agent_hands_back(
    build: Callable[[str], Any], mode: Any
) -> None:
    """Also if several calls at once are refused: the agent has one last request to its model."""
    records: list[Record] = []
    it = dig.wrap(build("half"), mode=mode, budget={"turns": 20}, sink=records.append)
    events = asyncio.run(ask(it))["events"]
    session = dig.session_of(it)
    dig.unwrap(it)
    assert events[-1][:2] == ("leader", [("model", "half")])
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    turns = 21 if build is round_and_round else 20  # else the leader is in its first turn
    assert session.statistics().turns == turns and session.result().partial
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


@pytest.mark.parametrize("build", [pair, round_and_round])
def test_an_agent_that_hands_nothing_back_fails_the_request(build: Callable[[str], Any]) -> None:
    records: list[Record] = []
    it = dig.wrap(build(""), budget={"turns": 20}, sink=records.append)
    with pytest.raises(dig.BudgetExceeded, match="20 turns, and `leader` handed back no"):
        asyncio.run(ask(it))
    session = dig.session_of(it)
    dig.unwrap(it)
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


def test_a_sequence_ends_with_what_there_is() -> None:
    records: list[Record] = []
    it = dig.wrap(sequence(AtOnce()), budget={"turns": 3}, sink=records.append)
    events = asyncio.run(ask(it))["events"]
    session = dig.session_of(it)
    dig.unwrap(it)
    assert {event[0] for event in events} <= {"first", "x", "y"}
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


def test_many_requests_have_a_budget_each(crowd: int) -> None:
    it = dig.wrap(pair("half"), budget={"turns": 2})

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(ask(it, f"{n}") for n in range(crowd)))

    results = asyncio.run(ask_all())
    session = dig.session_of(it)
    dig.unwrap(it)
    assert {str(one["events"][-1][1]) for one in results} == {"[('model', 'half')]"}
    assert session.statistics().partial == crowd


@pytest.mark.parametrize("build", [pair, round_and_round])
def test_tokens_are_looked_at_before_each_request_to_a_model(build: Callable[[str], Any]) -> None:
    """Also if an agent that was handed over to is interrupted in its turn."""
    records: list[Record] = []
    it = dig.wrap(build("half"), budget={"tokens": 500}, sink=records.append)
    events = asyncio.run(ask(it))["events"]
    dig.unwrap(it)
    assert events[-1][:2] == ("leader", [("model", "half")])
    stopped = [row for row in incidents(records) if row["stage"] == "stopped"]
    assert [row["spent"] for row in stopped] == [500]


def test_a_class_of_ones_own_is_recognised() -> None:
    class Mine(LlmAgent):  # type: ignore[misc]
        async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Any]:
            async for event in super()._run_async_impl(ctx):
                yield event

    it = dig.wrap(Mine(name="mine", model=alone(Script()).model))
    assert [*dig.session_of(it).monitor.graph.agents] == ["mine"]
    dig.unwrap(it)


@pytest.mark.parametrize(
    ("branch", "question"), [("all.b2", "What now?"), ("all.b", "b done"), ("all.b.c", "b done")]
)
def test_an_agent_beside_others_is_asked_what_its_own_branch_has(
    branch: str, question: str
) -> None:
    """The words of `b` are no question to `b2`, whose branch begins with the same letters."""
    said = Event(author="b", branch="all.b", content=types.ModelContent("b done"))
    context = SimpleNamespace(
        branch=branch,
        session=SimpleNamespace(events=[said]),
        user_content=types.UserContent("What now?"),
    )
    assert runs.question_of(context) == question
