"""CrewAI, wrapped: what is found in a crew, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import pytest

from . import crewai_teams as teams  # first: it switches off what CrewAI sends

# isort: split
from crewai import Task
from crewai.events import crewai_event_bus
from crewai.flow import Flow
from crewai.tools import tool as as_tool

import dig
from dig.errors import SettingsError
from dig.graph.records import Emit, Record, Start

from .conformance import Failing
from .crewai_teams import Watched, agent, answer, asks, crew, notes, says, scenario, task, uses
from .framework_gates import behind, messages, usher
from .harness import Script, play
from .test_budget import incidents

pytestmark = teams.ITS_OWN

FAILING = [
    Failing(scenario(teams.failing), {"b": "ValueError: no model today"}, None),
    Failing(
        scenario(teams.raising),
        {"b": "ValueError: no model today", "__task 2__": "by b"}, ("error", "b"), never=["c"],
    ),
    Failing(
        scenario(teams.raising, teams.akickoff),
        {"b": "ValueError: no model today", "__task 2__": "by b"}, ("error", "b"), never=["c"],
    ),
]  # fmt: skip

Kick = Callable[[Any], Any]
WAYS: list[Kick] = [lambda built: built.kickoff(), lambda built: asyncio.run(built.akickoff())]


# --- what is a request, a turn, an event ---


def flow(watched: Watched) -> list[tuple[str, str]]:
    """From whom to whom work went, in order."""
    agents = {row.activation: row.agent for row in watched.rows(Start)}
    work = (row for row in watched.rows(Emit) if row.type != "notice")
    return [(agents.get(row.by or "", "-"), ",".join(row.to)) for row in work]


@pytest.mark.parametrize("drive", [teams.kickoff, teams.kickoff_async, teams.akickoff])
def test_a_kickoff_is_one_request_and_outputs_go_to_the_tasks_that_have_them(drive: Any) -> None:
    """The crew is another at each task, and the last agent answers; both ways, sync and async."""
    watched = Watched()
    watched.must_change_nothing(scenario(teams.contexts, drive))
    assert watched.session.statistics().requests == 1
    assert flow(watched) == [
        ("-", "__crew__"), ("__crew__", "a"), ("a", "__crew__"), ("__task 2__", "a"),
        ("a", "__task 2__"), ("__task 3__", "b"), ("b", ""),
    ]  # fmt: skip
    said = [row.payload for row in watched.rows(Emit) if row.to == ("b",)]
    assert said == [{"task": "write it", "context": "a done"}]
    watched.must_be_over()


def test_a_coworker_that_is_asked_is_a_nested_call() -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(teams.delegating, teams.akickoff))
    assert flow(watched) == [
        ("-", "__crew__"), ("__crew__", "a"), ("a", "b"), ("b", "a"), ("a", "outer"),
        ("outer", "inner"), ("inner", "outer"), ("outer", "a"), ("a", ""),
    ]  # fmt: skip
    watched.must_be_over()


@pytest.mark.parametrize("drive", [teams.kickoff, teams.akickoff])
def test_the_manager_that_crewai_makes_is_an_agent(drive: Any) -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(teams.hierarchy, drive))
    assert watched.ran().count("Crew Manager") == 4 and {"a", "b"} < {*watched.ran()}
    watched.must_be_over()


@pytest.mark.parametrize("drive", [teams.for_each, teams.afor_each])
def test_copies_of_a_crew_are_watched_though_they_lose_what_was_put_on_it(drive: Any) -> None:
    """Each input is a request, and the agents of the copies go by the names of the crew's."""
    watched = Watched()
    play(scenario(teams.chain, drive), watched)
    assert watched.session.statistics().requests == 2
    assert {name.partition("#")[0] for name in watched.ran()} == {
        "__crew__", "__task 2__", "__task 3__", "a", "b", "c"
    }  # fmt: skip
    watched.must_be_over()


def test_a_copy_is_watched_no_more_when_the_crew_is_unwrapped() -> None:
    built = teams.chain(Script())
    before = {name: {*vars(it)} for name, it in (("crew", built), ("agent", built.agents[0]))}
    dig.wrap(built)
    session, twin = dig.session_of(built), built.copy()
    dig.unwrap(built)
    twin.kickoff()
    built.kickoff()
    assert session.statistics().requests == session.statistics().missed == 0
    after = {name: {*vars(it)} for name, it in (("crew", built), ("agent", built.agents[0]))}
    assert after == before


def test_agents_of_one_role_are_told_apart() -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(teams.same_roles))
    assert watched.ran() == ["__crew__", "writer", "__crew__", "__task 2__", "writer (2)"]


def test_an_agent_goes_by_its_role_as_it_was_written() -> None:
    """Inputs are filled into roles at each kickoff; patterns compare names."""

    def build(script: Script) -> Any:
        by = agent(script, "a", says("done"))
        by.role = "expert of\n {what}"
        return crew(task("find it", by))

    watched = Watched()
    watched.must_change_nothing(scenario(build, teams.for_each))
    assert {*watched.ran()} == {"__crew__", "expert of {what}"}


def parallel(script: Script) -> Any:
    """Two tasks at once, whose outputs the third one has."""
    a, b, c = (agent(script, name, says(f"{name} done")) for name in "abc")
    both = task("find {what}", a, async_execution=True), task("weigh it", b, async_execution=True)
    return crew(*both, task("write it", c, context=[*both]))


def without_context(self: Task, agent: Any, context: Any, tools: Any) -> Future[Any]:
    """`Task.execute_async` on a thread that knows nothing of its caller."""
    future: Future[Any] = Future()
    threading.Thread(target=self._execute_task_async, args=(agent, context, tools, future)).start()
    return future


@pytest.mark.parametrize("drive", [teams.kickoff, teams.akickoff])
@pytest.mark.parametrize("lost", [False, True])
def test_parallel_tasks_belong_to_their_request_in_threads_without_context_too(
    drive: Any, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crew's turn is handed over by hand."""
    if lost:
        monkeypatch.setattr(Task, "execute_async", without_context)
    watched = Watched("heal")
    assert "'answer': 'c done'" in str(play(scenario(parallel, drive), watched).returned)
    assert watched.session.statistics().requests == 1 and watched.patterns == []
    watched.must_be_over()


def test_what_crewai_tries_again_after_an_error_is_the_same_turn() -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(teams.retrying))
    assert watched.ran() == ["__crew__", "a"] and watched.patterns == []


def test_an_output_that_a_guardrail_refuses_is_no_answer() -> None:
    """The agent is asked again by the crew, which answers by itself then."""
    watched = Watched()
    watched.must_change_nothing(scenario(teams.guarded))
    assert watched.answers() == ["b better"] and watched.session.statistics().requests == 1


def test_the_event_bus_is_left_alone() -> None:
    """It only observes, on threads of its own: nothing could be held there."""
    before = {kind: {*each} for kind, each in crewai_event_bus._sync_handlers.items()}
    built = dig.wrap(teams.chain(Script()), mode="heal")
    built.kickoff()
    after = {kind: {*each} for kind, each in crewai_event_bus._sync_handlers.items()}
    dig.unwrap(built)
    assert before == after


@pytest.mark.parametrize("build", [teams.chain, teams.delegating])
@pytest.mark.parametrize("drive", [teams.kickoff, teams.akickoff])
def test_a_gate_keeps_messages_and_its_note_reaches_the_agent(drive: Any, build: Any) -> None:
    """A thread waits, the loop does not stand still."""
    gate = usher("Mind the gap.", keeps=messages, after_s=0.02)
    watched = Watched("heal", behind(gate)())
    outcome = play(scenario(build, drive), watched)
    assert "'answer': '" in str(outcome.returned) and "Mind the gap." in str(outcome.log)
    watched.must_be_over()


def test_a_request_may_be_cancelled_at_every_step(every: int) -> None:
    """Nothing stays open; what happens to CrewAI's threads is seen by no step of the loop."""
    raised = []
    for step in range(1, 60, 2 * every):
        watched = Watched()
        outcome = play(scenario(teams.delegating, teams.akickoff), watched, cancel_at=step)
        raised.append(bool(outcome.raised))
        assert outcome.raised or "all done" in str(outcome.returned)
        watched.must_be_over()
    assert any(raised) and not all(raised)


# --- what is found, and healed ---


def in_background(script: Script, *further: Any) -> Any:
    """A tool has an agent work in the background; the first answer does not wait for it."""
    answered, threads = threading.Event(), list[threading.Thread]()
    begun = threading.Event()

    def work(given: str, number: int) -> str:
        begun.set()
        answered.wait(10)
        return answer("b done")

    b = agent(script, "b", work)

    @as_tool("begin")  # type: ignore[untyped-decorator]
    def begin(text: str) -> str:
        """Begin to look something up."""
        context = copy_context()
        kick_off = lambda: context.run(b.kickoff, text)  # noqa: E731
        threads.append(threading.Thread(target=kick_off, name="background"))
        threads[0].start()
        begun.wait(10)
        return "begun"

    @as_tool("wait")  # type: ignore[untyped-decorator]
    def wait(text: str) -> str:
        """Wait for what was begun."""
        answered.set()
        threads[0].join()
        return "b done"

    replies = uses("begin", text="x"), says("without b"), *further
    first = agent(script, "a", *replies, tools=[begin, wait])
    return crew(task("find {what}", first, callback=lambda output: answered.set()), agents=[b])


def early(script: Script) -> Any:
    return in_background(script, uses("wait", text="x"), says("with b"))


@pytest.mark.parametrize("drive", [teams.kickoff, teams.akickoff])
def test_et_an_answer_before_work_in_the_background_is_done_goes_back(drive: Any) -> None:
    """The agent does its task again, with its first answer and the note."""
    watched = Watched("heal")
    outcome = play(scenario(early, drive), watched)
    assert "'answer': 'with b'" in str(outcome.returned)
    given = "\n".join(text for _, text in outcome.per_agent()["a"])
    assert "[monitor] Work is missing" in given and "Your previous answer:\nwithout b" in given
    assert watched.patterns[0] == "ET" and watched.healed()[0] == "reroute"
    assert watched.leaves_nothing_open()


def test_an_empty_call_as_an_answer_goes_back_to_an_agent_without_a_crew() -> None:
    def build(script: Script) -> Any:
        return agent(script, "a", says('{"name": "look", "arguments": {}}'), says("looked"))

    for drive in (teams.ask, teams.ask_async):
        watched = Watched("heal")
        assert play(scenario(build, drive), watched).returned == "'looked'"
        assert watched.patterns == ["VOID"]
        watched.must_be_over()


def round_about(given: str, number: int) -> str:
    """Ask two coworkers in turn: what equals the last call CrewAI does not run."""
    if notes(given) or number > 30:
        return answer("enough")
    return asks("bc"[number % 2], "is it good?")(given, number)


def going_round(script: Script) -> Any:
    b, c = (agent(script, name, says(f"{name} done")) for name in "bc")
    first = agent(script, "a", round_about, allow_delegation=True, max_iter=40, cache=False)
    # Older versions keep the results of tools, and ask nobody twice.
    return crew(task("find {what}", first), agents=[b, c], cache=False)


@pytest.mark.parametrize("drive", [teams.kickoff, teams.akickoff])
def test_the_same_again_and_again_is_a_loop_and_a_note_ends_it(drive: Any) -> None:
    watched = Watched("heal")
    outcome = play(scenario(going_round, drive), watched)
    assert "LOOP" in watched.patterns and "'answer': 'enough'" in str(outcome.returned)
    assert outcome.log.count(("a", "ends", "")) < 20
    assert watched.leaves_nothing_open()


def test_crewai_does_not_run_what_equals_the_last_call() -> None:
    """So seven equal questions are one event, and no loop."""

    def build(script: Script) -> Any:
        b = agent(script, "b", says("b done"))
        first = agent(script, "a", *[asks("b", "x")] * 7, says("done"), allow_delegation=True)
        return crew(task("find {what}", first), agents=[b])

    watched = Watched()
    watched.must_change_nothing(scenario(build))
    assert watched.ran().count("b") < 7 and "LOOP" not in watched.patterns


def sequence(script: Script, *more: Task) -> Any:
    """Fifty tasks one after the other, by two agents in turn."""
    agents = [agent(script, name, says(f"{name} done")) for name in "ab"]
    return crew(*more, *(task(f"step {number}", agents[number % 2]) for number in range(50)))


@pytest.mark.parametrize("kick", WAYS)
def test_fifty_tasks_of_two_agents_are_quiet(kick: Kick) -> None:
    """Each is planned, so none is a turn of a circle."""
    built = dig.wrap(sequence(Script()))
    assert kick(built).raw == "b done"
    session = dig.session_of(built)
    dig.unwrap(built)
    assert session.findings == () and session.statistics().requests == 1


def in_a_ring(script: Script) -> Any:
    """The agent of the first task asks, and refuses what it is told."""

    def ask(given: str, number: int) -> str:
        return answer("enough") if number > 12 else asks("b", f"question {number}")(given, number)

    b = agent(script, "b", lambda given, number: answer(f"no {number}"))
    first = agent(script, "first", ask, allow_delegation=True, max_iter=40)
    built = sequence(script, task("find it", first))
    built.agents.append(b)
    return built


def never_good(script: Script) -> Any:
    """A guardrail refuses whatever an agent says."""
    last = agent(script, "last", lambda given, number: answer(f"version {number}"))
    check: Any = lambda output: (False, "make it better")  # noqa: E731
    built = sequence(script)
    built.tasks.append(task("print it", last, guardrail=check, guardrail_max_retries=12))
    return crew(*built.tasks)


@pytest.mark.parametrize(("build", "ring"), [
    (in_a_ring, ["__crew__", "b", "first"]), (never_good, ["__task 50__", "__task 51__", "last"]),
])  # fmt: skip
def test_a_task_that_goes_round_is_a_livelock_however_many_tasks_there_are(
    build: Any, ring: list[str]
) -> None:
    watched = Watched()
    play(scenario(build), watched)
    rings = [each for each in watched.session.findings if each.pattern == "LIVELOCK"]
    assert [each.evidence["agents"] for each in rings] == [ring]


def twice(script: Script) -> Any:
    """The same part is given to two agents."""
    b, c = (agent(script, name, says(f"{name} done")) for name in "bc")

    def reply(given: str, number: int) -> str:
        if number < 3:
            return asks("bc"[number - 1], "rome")(given, number)
        return answer("done twice" if notes(given) else "done")

    first = agent(script, "a", reply, allow_delegation=True)
    return crew(task("find {what}", first), agents=[b, c])


# --- budgets ---


def spending(script: Script) -> Any:
    """An agent that asks two others, each time something else, until it is told."""
    b, c = (agent(script, name, says(f"{name} done")) for name in "bc")

    def reply(given: str, number: int) -> str:
        if "used up" in given:
            return answer("half")
        return asks("bc"[number % 2], f"{given.count('Observation')}?")(given, number)

    first = agent(script, "a", reply, allow_delegation=True, max_iter=60)
    return crew(task("find {what}", first), agents=[b, c])


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("kick", WAYS)
def test_a_loop_of_questions_is_stopped_and_the_agent_hands_back(kick: Kick, mode: Any) -> None:
    """The note comes in place of the coworker's answer, after the twentieth turn."""
    records: list[Record] = []
    built = dig.wrap(spending(Script()), mode=mode, budget={"turns": 20}, sink=records.append)
    result = kick(built)
    session = dig.session_of(built)
    dig.unwrap(built)
    assert result.raw == "half"
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    begun = [row.agent for row in records if isinstance(row, Start) and row.agent in ("b", "c")]
    assert len(begun) == 19 and session.result().partial
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


@pytest.mark.parametrize("kick", WAYS)
def test_between_tasks_the_crew_hands_back_the_latest_output(kick: Kick) -> None:
    """Tasks that come later have the same output, and no agent works on them."""
    script = Script()
    built = dig.wrap(teams.chain(script), budget={"turns": 1})
    result = kick(built)
    session = dig.session_of(built)
    dig.unwrap(built)
    assert result.raw == "a done" and {agent for agent, *_ in script.log} == {"a"}
    assert session.result().partial and session.statistics().open_turns == 0


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("kick", WAYS)
def test_an_output_handed_back_at_the_limit_stands_for_the_last_task(
    kick: Kick, before: int
) -> None:
    """Also if the agent of an earlier task had the first turn of the request."""
    last = agent(Script(), "z", says("z done"))
    built = spending(Script())
    tasks = [task("warm up", last)] * before + [*built.tasks, task("print it", last)]
    built = dig.wrap(crew(*tasks, agents=built.agents), budget={"turns": 4 + before})
    result = kick(built)
    session = dig.session_of(built)
    dig.unwrap(built)
    assert [output.raw for output in result.tasks_output][before:] == ["half", "half"]
    assert session.result().partial and session.statistics().open_turns == 0


@pytest.mark.parametrize("kick", WAYS)
def test_a_crew_without_any_output_fails_at_the_limit(kick: Kick) -> None:
    def build() -> Any:
        b = agent(Script(), "b", says("b done"))
        first = agent(Script(), "a", lambda given, number: asks("b", f"{number}?")(given, number),
                      allow_delegation=True, max_iter=60)  # fmt: skip
        return crew(task("find it", first), task("write it", b))

    records: list[Record] = []
    built = dig.wrap(build(), budget={"turns": 5}, sink=records.append)
    with pytest.raises(dig.BudgetExceeded, match="5 turns, and `a` handed back no") as caught:
        kick(built)
    session = dig.session_of(built)
    dig.unwrap(built)
    assert "b done" in caught.value.partial
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0 and session.statistics().open_turns == 0


@pytest.mark.timeout(20)
def test_a_parallel_task_at_the_limit_leaves_nobody_waiting() -> None:
    """Its thread ends with the error of the limit, which reaches the caller of the crew."""
    built = dig.wrap(parallel(Script()), budget={"turns": 1})
    with suppress(dig.BudgetExceeded):  # unless the other task has ended by then
        assert built.kickoff().raw in ("a done", "b done")
    session = dig.session_of(built)
    dig.unwrap(built)
    assert session.statistics().faults == 0


@pytest.mark.timeout(900)  # on a busy machine
def test_many_requests_have_a_budget_each(crowd: int) -> None:
    built = dig.wrap(spending(Script()), budget={"turns": 2})
    results = asyncio.run(built.akickoff_for_each([{"what": f"{n}"} for n in range(crowd)]))
    session = dig.session_of(built)
    dig.unwrap(built)
    assert {result.raw for result in results} == {"half"}
    assert session.statistics().partial == crowd


def test_tokens_are_counted_for_the_agent_that_uses_them() -> None:
    records: list[Record] = []
    built = dig.wrap(spending(Script()), budget={"tokens": 500}, sink=records.append)
    result = built.kickoff()
    dig.unwrap(built)
    assert result.raw == "half"
    stopped = [row for row in incidents(records) if row["stage"] == "stopped"]
    assert [row["spent"] for row in stopped] == [500]


# --- what is refused ---


class Story(Flow):  # type: ignore[misc]
    pass


def test_a_flow_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"Story is a Flow.*wrap the crews"):
        dig.wrap(Story())


def test_several_crews_are_refused_with_what_to_do() -> None:
    with pytest.raises(SettingsError, match=r"no team of crewai: give dig.wrap the Crew"):
        dig.wrap([teams.chain(Script())])


def test_a_crew_that_a_flow_runs_is_watched() -> None:
    """Each of its kickoffs is a request."""
    from crewai.flow import start

    built = dig.wrap(teams.chain(Script()))

    class Book(Flow):  # type: ignore[misc]
        @start()  # type: ignore[untyped-decorator]
        def write(self) -> str:
            return str(built.kickoff(inputs={"what": "rain"}).raw)

    assert Book().kickoff() == "c done"
    assert dig.session_of(built).statistics().requests == 1
    dig.unwrap(built)
