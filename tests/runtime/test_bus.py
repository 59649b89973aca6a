"""The bus: a team in real time, on asyncio and trio; here time is virtual, and nobody sleeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
import trio.lowlevel
import trio.testing

from dig import Create, Inject, Limits, Output, Reroute, Step, run
from dig.errors import RequestError, RuleError, SettingsError
from dig.graph.records import Run
from dig.monitor.messages import Gate
from dig.monitor.policies import Delayed, ToAgents
from dig.runtime import Agent, Bus, Decision, NewEvent, Setup, View
from tests.conservation import Account, Allowed, conservation
from tests.helpers import (
    Keeper,
    Recorder,
    Scripted,
    VirtualLoop,
    drop,
    read,
    rows,
    story,
    submit,
    tell,
    two_detectors,
    two_healers,
    wait,
)

pytestmark = pytest.mark.anyio

SHORT = Limits(dl_window_s=10.0)


def account(sink: Recorder) -> Account:
    return conservation(sink, Allowed(interference=True))


def told(sink: Recorder, *kinds: str) -> list[str]:
    """Some kinds of records, as short lines."""
    return [line for line in story(sink) if line.split()[0] in kinds]


def tasks() -> int:
    """How many tasks there are, on either backend."""
    if trio.lowlevel.in_trio_run():
        return trio.lowlevel.current_statistics().tasks_living
    return len(asyncio.all_tasks())


@asynccontextmanager
async def no_task_left() -> AsyncIterator[None]:
    before = tasks()
    yield
    assert tasks() == before


class Once:
    """An agent that does something odd in its first activation, and submits in the second."""

    def __init__(self, odd: Any) -> None:
        self.odd = odd
        self.turns = 0

    async def act(self, view: View) -> Decision:
        self.turns += 1
        if self.turns == 1:
            return await self.odd(view)  # type: ignore[no-any-return]
        return Decision.submit(view, "well")


async def test_the_backend_is_the_one_that_is_named(anyio_backend: Any) -> None:
    """And its time is virtual: half an hour is no time."""
    name = anyio_backend[0]
    assert trio.lowlevel.in_trio_run() == (name == "trio")
    if name == "trio":
        assert isinstance(trio.lowlevel.current_clock(), trio.testing.MockClock)
    else:
        assert isinstance(asyncio.get_running_loop(), VirtualLoop)
    before = anyio.current_time()
    await anyio.sleep(1800)
    assert anyio.current_time() - before == pytest.approx(1800)


# --- activation -----------------------------------------------------------------------------


async def test_a_run_from_problem_to_answer() -> None:
    """The first agent gets the problem, if nobody is named; the result tells all."""
    sink = Recorder()
    team = {"a": Scripted(tell("b")), "b": Scripted(submit(7), think_s=0.5)}
    async with no_task_left():
        result = await Bus(team, sink=sink).run("?")
    assert (result.outcome, result.answer, result.seconds) == ("submitted", 7, 0.6)
    assert (result.activations, result.records) == (2, len(sink))
    assert story(sink)[1:] == [
        *("emit e1 by world to a", "deliver e1 to a"),
        *("start a1 of a on e1", "end a1", "emit e2 by a1 to b", "deliver e2 to b"),
        *("start a2 of b on e2", "end a2", "emit e3 by a2 to nobody", "deliver e3 to world"),
        "finish submitted",
    ]


async def test_an_agent_is_activated_when_its_buffer_changes_while_it_is_idle() -> None:
    """What comes while it is busy is shown to it in its next activation, all at once."""
    sink = Recorder()
    team = {
        "a": Scripted(tell("b"), think_s=1.0),
        "b": Scripted(read, submit(), think_s=10.0),
    }
    async with Bus(team, sink=sink).open() as bus:
        bus.inject("one", ["a", "b"])
        await anyio.sleep(5)
        bus.inject("two", ["b"])
        await bus.wait()
    assert told(sink, "start")[-1] == "start a3 of b on e2+e3"
    assert [row.ts for row in rows(sink, "start")] == [0.0, 0.0, 10.0]


async def test_wait_does_not_activate_again() -> None:
    """Nothing changes by waiting; the next event wakes the agent to its whole buffer."""
    sink = Recorder()
    agent = Scripted(wait, wait, submit())
    async with Bus({"a": agent}, Setup(session=True), sink=sink).open() as bus:
        bus.inject("one")
        await anyio.sleep(50)
        assert len(agent.views) == 1
        bus.inject("two")
        await anyio.sleep(50)
        assert len(agent.views) == 2
        bus.inject("three")
        await anyio.sleep(50)
    assert told(sink, "start")[-1] == "start a3 of a on e1+e2+e3"


async def test_an_agent_is_activated_again_while_it_gets_something_done() -> None:
    """Some but not all of its inputs have left its buffer: on it goes."""

    def one(view: View) -> Decision:
        return drop(View(view.agent, view.team, view.turn, view.time_s, view.events[:1]))

    sink = Recorder()
    agent = Scripted(one, one, one, one)
    async with Bus({"a": agent}, Setup(), sink=sink).open() as bus:
        for n in range(3):
            bus.inject(n)
        await bus.wait()
    assert [len(view.events) for view in agent.views] == [3, 2, 1]


async def test_a_view_shows_what_an_agent_may_know() -> None:
    """Its name, the team, the turn, the time, the tools, and payloads of its own."""
    seen: list[View] = []

    async def look(view: View) -> Decision:
        seen.append(view)
        view.events[0].payload.append("mine")
        return Decision.respond(view)

    async with Bus({"a": look, "b": look}, Setup(tools={"add": sum})).open() as bus:
        await anyio.sleep(2)
        bus.inject([1], ["a", "b"])
        await bus.wait()
    views = {view.agent: view for view in seen}
    assert (views["a"].team, views["a"].others) == (("a", "b"), ("b",))
    assert (views["a"].turn, views["a"].time_s) == (1, 2.0)
    assert views["a"].tools["add"]([1, 2]) == 3
    with pytest.raises(TypeError):
        views["a"].tools["mul"] = sum  # type: ignore[index]
    assert [view.events[0].payload for view in views.values()] == [[1, "mine"], [1, "mine"]]


# --- agents that fail -----------------------------------------------------------------------


async def _raises(view: View) -> Any:
    raise RuntimeError("a bad day")


async def _none(view: View) -> Any:
    return None


async def _wrong_fate(view: View) -> Any:
    return {"fates": [{"event": "e99", "fate": "consume"}]}


async def _no_json(view: View) -> Any:
    return Decision.respond(view, NewEvent(payload=object(), to=["a"]))


async def _broken(view: View) -> Any:
    return Decision.model_construct(fates=None, outputs=[])


async def _two_answers(view: View) -> Any:
    return Decision(outputs=[NewEvent(payload=1, final=True), NewEvent(payload=2, final=True)])


async def _policy_of_words(view: View) -> Any:
    return {"outputs": [{"payload": 1, "policy": "to everybody"}]}


async def _cancelled(view: View) -> Any:
    """It awaits something that somebody else has cancelled."""
    if trio.lowlevel.in_trio_run():
        raise RuntimeError("a trio task cannot be cancelled without a scope")
    task = asyncio.ensure_future(asyncio.sleep(9))
    task.cancel()
    return await task


@pytest.mark.parametrize(
    "odd",
    [_raises, _none, _wrong_fate, _no_json, _broken, _two_answers, _policy_of_words, _cancelled],
)
async def test_a_failing_agent_loses_nothing(odd: Any) -> None:
    """It raises or returns nonsense: its inputs stay, and it is started again after a while."""
    sink = Recorder()
    async with no_task_left():
        result = await Bus({"a": Once(odd)}, Setup(backoff_s=3.0), sink=sink).run("?")
    assert (result.outcome, result.answer, result.failures) == ("submitted", "well", {"a": 1})
    assert [row.ts for row in rows(sink, "start")] == [0.0, 3.0]
    assert rows(sink, "end")[0].error and [f.fate for f in rows(sink, "end")[0].fates] == ["delay"]
    assert told(sink, "start")[1] == "start a2 of a on e1"
    account(sink)


async def test_failures_are_tried_again_with_back_off_a_bounded_number_of_times() -> None:
    """Then the run ends by that error, if nothing else can happen, and says what is left."""
    sink = Recorder()
    agent = Scripted(*[RuntimeError("no")] * 9, think_s=0.0)
    result = await Bus({"a": agent}, Setup(retries=3, backoff_s=1.0), sink=sink).run("?")
    assert [row.ts for row in rows(sink, "start")] == [0.0, 1.0, 3.0, 7.0]
    assert (result.outcome, result.failures) == ("error", {"a": 4})
    assert result.left.unconsumed == ("e1",)


async def test_failures_in_a_row_are_counted_anew_after_a_success() -> None:
    """An agent that recovers has all its attempts again."""
    no = RuntimeError("no")
    agent = Scripted(no, wait, no, submit(), think_s=0.0)
    async with Bus({"a": agent}, Setup(retries=1, session=True)).open() as bus:
        bus.inject("?")
        await anyio.sleep(10)
        assert await bus.ask("?") == 42
    assert bus.result.failures == {"a": 2}


async def test_an_agent_that_takes_too_long_is_cut_off() -> None:
    """Its activation ends with an error after the activation's time limit, and it is retried."""

    async def long(view: View) -> Decision:
        await anyio.sleep(1000)
        return Decision.wait()

    sink = Recorder()
    setup = Setup(activation_timeout_s=5.0, backoff_s=1.0)
    result = await Bus({"a": Once(long)}, setup, sink=sink).run("?")
    assert (result.outcome, result.seconds) == ("submitted", 6.0)
    assert rows(sink, "end")[0].error == "TimeoutError: took longer than 5 s"


async def test_a_failing_agent_does_not_hold_up_the_others() -> None:
    """They are activated during its back-off."""
    sink = Recorder()
    team: dict[str, Agent] = {"a": Once(_raises), "b": Scripted(tell("a"), think_s=1.0)}
    async with Bus(team, Setup(backoff_s=60.0), sink=sink).open() as bus:
        bus.inject("?", ["a", "b"])
        await bus.wait()
    assert told(sink, "deliver")[-2] == "deliver e2 to a"
    assert told(sink, "start")[-1] == "start a3 of a on e1+e2"
    assert rows(sink, "start")[-1].ts == 60.0  # what came meanwhile does not cut it short


# --- the end --------------------------------------------------------------------------------


async def test_the_time_limit_ends_a_run() -> None:
    """Whatever the team does; what was cut off is told."""
    sink = Recorder()
    async with no_task_left():
        slow = {"a": Scripted(read, think_s=50)}
        result = await Bus(slow, Setup(limit_s=20.0), sink=sink).run("?")
    assert (result.outcome, result.seconds) == ("timeout", 20.0)
    assert result.left.unfinished == account(sink).unfinished == {"a1": "a"}


async def test_a_run_that_stands_still_ends() -> None:
    """Nobody works, nothing is due: it does not wait for the time limit."""
    sink = Recorder()
    result = await Bus({"a": Scripted(wait)}, Setup(), sink=sink).run("?")
    assert (result.outcome, result.seconds) == ("stopped", 0.1)
    assert result.reason == "nothing could happen any more"


async def test_a_bus_monitors_by_default() -> None:
    """What is found is healed by a note, so the answer comes."""
    result = await Bus({"a": Scripted(wait, submit(7))}).run("?")
    assert (result.outcome, result.answer) == ("submitted", 7)
    assert [finding.pattern for finding in result.findings] == ["DL"]
    unwatched = await Bus({"a": Scripted(wait, submit(7))}, Setup()).run("?")
    assert (unwatched.outcome, unwatched.findings) == ("stopped", ())


def test_run_is_the_shortest_way() -> None:
    """It takes the arguments of a bus."""
    records = Recorder()
    result = run({"a": Scripted(submit(7))}, "?", sink=records, setup=Setup(run="short"))
    assert result.answer == 7
    [header] = [record for record in records if isinstance(record, Run)]
    assert header.run == "short"


async def test_a_run_that_may_still_raise_a_finding_does_not_end_before() -> None:
    """A deadlock is raised in its time; told about it, the agents may go on."""
    sink = Recorder()
    setup = Setup(detectors=two_detectors, healers=two_healers, limits=SHORT)
    result = await Bus({"a": Scripted(wait, submit(7))}, setup, sink=sink).run("?")
    assert (result.outcome, result.answer) == ("submitted", 7)
    [finding] = result.findings
    assert (finding.pattern, finding.ts) == ("DL", 10.0)
    assert result.heals == {"create": 1}


@pytest.mark.parametrize("native", [False, True])
async def test_cancellation_from_outside_leaves_a_complete_trace(
    native: bool, anyio_backend: Any
) -> None:
    """The outcome is `stopped`, nothing runs on, and the cancellation is raised on."""
    sink = Recorder()
    bus = Bus({"a": Scripted(read, think_s=50), "b": Scripted(read)}, sink=sink)
    ended: list[str] = []

    async def run() -> None:
        try:
            await bus.run("?", ["a", "b"])
        except anyio.get_cancelled_exc_class():
            ended.append("cancelled")
            raise

    async with no_task_left():
        if native and anyio_backend[0] == "asyncio":
            task = asyncio.ensure_future(run())
            await anyio.sleep(5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with anyio.move_on_after(5) as scope:
                await run()
            assert scope.cancelled_caught
    assert ended == ["cancelled"]
    assert story(sink)[-1] == "finish stopped"
    assert list(account(sink).unfinished.values()) == ["a"]
    assert bus.result.outcome == "stopped" and bus.result.left.unfinished
    assert bus.result.reason == "it was cancelled from outside"


async def test_an_agent_that_cleans_up_while_the_run_ends_spoils_nothing() -> None:
    """It raises, returns or takes its time when it is cancelled: the trace is complete."""

    async def raises(view: View) -> Decision:
        try:
            await anyio.sleep(1000)
        finally:
            raise RuntimeError("in a hurry")

    async def slow(view: View) -> Decision:
        try:
            await anyio.sleep(1000)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(3)
        return Decision.wait()

    sink = Recorder()
    async with no_task_left():
        with anyio.move_on_after(5):
            await Bus({"a": raises, "b": slow}, sink=sink).run("?", ["a", "b"])
    assert story(sink)[-1] == "finish stopped"
    account(sink)


async def test_the_result_is_there_when_the_run_has_ended_and_not_before() -> None:
    """Asking earlier is an error that says so."""
    bus = Bus({"a": Scripted(wait)}, Setup())
    with pytest.raises(SettingsError, match="not ended"):
        _ = bus.result
    await bus.run("?")
    assert bus.result.outcome == "stopped"


async def test_a_team_is_checked_before_anything_happens() -> None:
    """Nobody, or somebody called `system`."""
    with pytest.raises(SettingsError):
        Bus({})
    with pytest.raises(RuleError, match="system"):
        await Bus({"system": Scripted()}).run("?")


async def test_what_the_body_raises_is_raised_as_it_is() -> None:
    """No group around it, and the trace says `error`."""
    sink, error = Recorder(), KeyError("mine")

    async def body() -> None:
        async with Bus({"a": Scripted()}, sink=sink).open() as bus:
            bus.inject("?")
            raise error

    with pytest.raises(KeyError) as raised:
        await body()
    assert raised.value is error
    assert story(sink)[-1] == "finish error"


# --- come and go ----------------------------------------------------------------------------


async def test_agents_join_and_leave_while_the_team_runs() -> None:
    """A newcomer is part of the team at once; who leaves is cut off, and its work orphaned."""
    sink = Recorder()
    team = {"a": Scripted(tell("c"), think_s=1.0), "b": Scripted(read, think_s=50)}
    async with no_task_left(), Bus(team, sink=sink).open() as bus:
        bus.join("c", Scripted(submit("c was here")))
        bus.inject("?", ["a", "b"])
        await anyio.sleep(0.5)
        bus.leave("b")
        await bus.wait()
    assert bus.result.answer == "c was here"
    assert told(sink, "join", "leave") == ["join c", "leave b"]
    assert account(sink).unfinished == {}


async def test_joining_before_the_first_problem_does_not_end_the_run() -> None:
    """A run in which nothing has come yet does not stand still."""
    async with Bus({"a": Scripted(tell("b"))}).open() as bus:
        bus.join("b", Scripted(submit(5)))
        await anyio.sleep(10)
        bus.inject("?")
        await bus.wait()
    assert bus.result.answer == 5


async def test_an_agent_may_leave_in_the_middle_of_its_own_act() -> None:
    """What it decides then counts for nothing, and the team goes on."""

    async def last(view: View) -> Decision:
        bus.leave("a")
        return Decision.submit(view, "never")

    sink = Recorder()
    async with Bus({"a": last, "b": Scripted(submit("b"), think_s=3)}, sink=sink).open() as bus:
        bus.inject("?", ["a", "b"])
        await bus.wait()
    assert (bus.result.outcome, bus.result.answer) == ("submitted", "b")
    account(sink)


async def test_an_agent_may_be_dismissed_in_the_moment_in_which_it_is_done() -> None:
    """Its decision and its dismissal fall together: whoever comes first counts, nothing breaks."""
    done = anyio.Event()

    async def act(view: View) -> Decision:
        await done.wait()
        return Decision.submit(view, "a")

    sink = Recorder()
    async with Bus({"a": act, "b": Scripted(submit("b"), think_s=3)}, sink=sink).open() as bus:
        bus.inject("?", ["a", "b"])
        await anyio.sleep(1)
        done.set()
        bus.leave("a")
        await bus.wait()
    assert bus.result.outcome == "submitted"
    account(sink)


async def test_mail_and_dismissal_may_come_together() -> None:
    """An agent that was woken and has left at once is not started."""
    sink = Recorder()
    async with Bus({"a": Scripted(), "b": Scripted(submit())}, sink=sink).open() as bus:
        await anyio.sleep(1)
        bus.inject("?", ["a", "b"])
        bus.leave("a")
        await bus.wait()
    assert bus.result.outcome == "submitted"
    assert told(sink, "start") == ["start a1 of b on e1"]


async def test_an_agent_may_go_and_come_back_at_once() -> None:
    """The one that comes back is another one: nothing of the first gets in its way."""
    sink = Recorder()
    first = Scripted(submit("first"))
    async with Bus({"a": first}, Setup(session=True), sink=sink).open() as bus:
        for n in range(3):
            bus.leave("a")
            bus.join("a", Scripted(submit(n), think_s=1.0))
        assert await bus.ask("?") == 2
        bus.inject("for one who is gone")
        bus.leave("a")
        bus.join("a", Scripted(submit("again")))
        assert await bus.ask("?") == "again"
        await anyio.lowlevel.checkpoint()
    assert first.views == []
    account(sink)


async def test_one_that_cannot_join_or_leave_changes_nothing() -> None:
    """The error goes to whoever asked for it, and the run goes on."""
    async with Bus({"a": Scripted(submit())}).open() as bus:
        with pytest.raises(RequestError):
            bus.join("a", Scripted())
        with pytest.raises(RequestError):
            bus.leave("nobody")
        bus.inject("?")
        await bus.wait()
    assert bus.result.outcome == "submitted"


async def test_a_departure_moves_the_alarm() -> None:
    """The last one at work leaves: the deadlock of the others is raised in time."""
    sink = Recorder()
    team = {"a": Scripted(wait), "b": Scripted(wait, think_s=500)}
    setup = Setup(detectors=two_detectors, limits=SHORT, limit_s=100.0, activation_timeout_s=1000.0)
    async with Bus(team, setup, sink=sink).open() as bus:
        bus.inject("?", ["a", "b"])
        await anyio.sleep(5)
        bus.leave("b")
        await bus.wait()
    assert [row.ts for row in rows(sink, "finding")] == [10.0]


# --- sessions -------------------------------------------------------------------------------


async def _echo(view: View) -> Decision:
    """Answer each problem, one in an activation, in as many seconds as it says."""
    event = view.events[-1]
    await anyio.sleep(event.payload)
    mine = View(view.agent, view.team, view.turn, view.time_s, (event,))
    return Decision.submit(mine, f"{event.payload} s")


async def test_a_session_answers_overlapping_questions() -> None:
    """Each asker gets the answer to its own problem, whichever comes first."""
    answers: dict[float, str] = {}
    sink = Recorder()

    async def ask(bus: Bus, seconds: float, to: str) -> None:
        answers[seconds] = await bus.ask(seconds, [to])

    team: dict[str, Agent] = {"a": Asks(), "b": Asks(), "c": Asks()}
    async with no_task_left(), Bus(team, Setup(session=True), sink=sink).open() as bus:
        async with anyio.create_task_group() as group:
            for seconds, to in ((5.0, "a"), (1.0, "b"), (3.0, "c")):
                group.start_soon(ask, bus, seconds, to)
        assert await bus.ask(2.0, ["a"]) == "2.0 s"
    assert list(answers.items()) == [(1.0, "1.0 s"), (3.0, "3.0 s"), (5.0, "5.0 s")]
    assert bus.result.outcome == "stopped" and bus.result.reason == "the team was dismissed"
    account(sink)


class Asks:
    async def act(self, view: View) -> Decision:
        return await _echo(view)


async def test_an_answer_finds_its_asker_though_healing_spoke_first() -> None:
    """What is due when a question comes is healed before it; the ids are not mixed up."""
    setup = Setup(session=True, detectors=two_detectors, healers=two_healers, limits=SHORT)

    def last(view: View) -> Decision:
        mine = View(view.agent, view.team, view.turn, view.time_s, view.events[-1:])
        return Decision.submit(mine, "the answer")

    async with Bus({"a": Scripted(wait, last, last, last)}, setup).open() as bus:
        bus.inject("a problem that nobody solves")
        await anyio.sleep(5)
        bus._began -= 100  # the loop was blocked: the deadlock is due, and nobody has ticked
        assert await bus.ask("?") == "the answer"


async def test_a_question_that_the_end_overtakes_is_an_error() -> None:
    """Nobody waits for an answer that cannot come."""
    async with no_task_left():
        with pytest.raises(SettingsError, match="before the answer"):
            async with Bus({"a": Scripted(wait)}, Setup(session=True, limit_s=20.0)).open() as bus:
                await bus.ask("?")
    assert bus.result.outcome == "timeout"


async def test_a_limit_that_has_passed_before_anything_began_ends_the_run() -> None:
    """The loop was blocked from the start: the run ends by its limit, not by an error."""
    bus = Bus({"a": Scripted(wait)}, Setup(session=True, limit_s=20.0))
    async with no_task_left(), bus.open():
        bus._began -= 100
        await anyio.sleep(1)
    assert bus.result.outcome == "timeout"


async def test_a_session_does_not_end_because_it_stands_still() -> None:
    """Further problems may come; `stop` ends it."""
    async with Bus({"a": Scripted(wait)}, Setup(session=True)).open() as bus:
        bus.inject("?")
        await anyio.sleep(50)
        bus.stop("enough")
        await bus.wait()
    assert (bus.result.outcome, bus.result.reason) == ("stopped", "enough")


# --- gates and time -------------------------------------------------------------------------


async def test_a_gate_decides_while_the_others_go_on() -> None:
    """Its decision is carried out when it comes."""
    sink = Recorder()
    gate = Keeper(["e2"], after_s=5.0, decides=(Inject("e2", "approved"),))
    b = Scripted(submit())
    team = {"a": Scripted(tell("bc")), "b": b, "c": Scripted(tell("a"))}
    result = await Bus(team, Setup(gates=[gate]), sink=sink).run("?")
    assert (result.outcome, result.seconds) == ("submitted", 5.2)
    assert b.views[0].events[0].notes == ("approved",)
    account(sink)


async def test_a_gate_that_takes_too_long_is_not_waited_for() -> None:
    """At its deadline the event goes, and what was agreed is done."""
    sink = Recorder()
    gate = Keeper(["e2"], seconds=3.0, after_s=500.0, otherwise=(Reroute("e2", "late", ("c",)),))
    team = {"a": Scripted(tell("b")), "b": Scripted(), "c": Scripted(submit("c"))}
    async with no_task_left():
        result = await Bus(team, Setup(gates=[gate]), sink=sink).run("?")
    assert (result.answer, result.seconds) == ("c", 3.2)
    assert "incident gate deadline passed" in story(sink)


async def test_an_answer_may_come_through_a_gate_in_the_moment_of_somebodys_end() -> None:
    """A gate lets an answer go at its deadline, and another agent ends right then."""
    sink = Recorder()
    gate = Keeper(["e2", "e3"], seconds=3.0, after_s=500.0)
    team = {"a": Scripted(submit("a"), think_s=1.0), "b": Scripted(tell("a"), think_s=4.0)}
    result = await Bus(team, Setup(gates=[gate]), sink=sink).run("?", ["a", "b"])
    assert (result.outcome, result.answer) == ("submitted", "a")
    account(sink)


@pytest.mark.parametrize("decided", [None, 5, ("x",), (Inject("e99", "?"),)])
async def test_a_gate_that_fails_lets_the_event_go(decided: Any) -> None:
    """It raises, or decides nonsense."""

    class Odd(Keeper):
        async def decide(self, event: Any) -> Any:
            if decided is None:
                raise RuntimeError("broken")
            return decided

    sink = Recorder()
    team: dict[str, Agent] = {"a": Scripted(tell("b")), "b": Scripted(submit())}
    gates: list[Gate] = [Odd(["e2"])]
    result = await Bus(team, Setup(gates=gates), sink=sink).run("?")
    assert result.outcome == "submitted" and "incident failed" in story(sink)


async def test_with_fail_closed_a_failing_gate_ends_the_run() -> None:
    """The outcome is `error`; nothing is raised."""
    gate = Keeper(["e2"], decides=(Create("", None),))  # type: ignore[arg-type]
    team = {"a": Scripted(tell("b")), "b": Scripted(submit())}
    result = await Bus(team, Setup(gates=[gate], fail_closed=True)).run("?")
    assert (result.outcome, result.reason) == ("error", "a part of the monitor failed")


async def test_an_event_that_a_policy_delays_arrives_in_time() -> None:
    """The run does not end before, although nobody works meanwhile."""
    sink = Recorder()
    policy = Delayed(ToAgents(("b",)), after_s=7.0)
    team = {"a": Scripted(tell("", policy=policy)), "b": Scripted(submit())}
    result = await Bus(team, sink=sink).run("?")
    assert result.outcome == "submitted"
    assert [row.ts for row in rows(sink, "deliver")][1] == 7.1


async def test_a_policy_that_is_asked_again_and_again_does_not_stop_the_clock() -> None:
    """It is asked as often as it says, and the run still ends in time."""

    class Again:
        asked = 0

        def step(self, now: Any) -> Step:
            self.asked += 1
            return Step(("b",), then=self, in_s=1.0)

    policy = Again()
    team = {"a": Scripted(tell("", policy=policy)), "b": Scripted()}
    result = await Bus(team, Setup(limit_s=30.0)).run("?")
    assert (result.outcome, result.seconds) == ("timeout", 30.0)
    assert 28 <= policy.asked <= 31


async def test_a_policy_that_exits_leaves_things_as_they_are() -> None:
    """`sys.exit` in a delivery policy is a failure of that part, and ends no team."""

    class Exits:
        def step(self, now: Any) -> Step:
            raise SystemExit(3)

    team = {"a": Scripted(tell("b", policy=Exits())), "b": Scripted(submit())}
    result = await Bus(team, Setup(limit_s=30.0)).run("?")
    assert "raised SystemExit(3)" in [one.what for one in result.component_failures]


async def test_a_faster_clock_changes_no_time_in_the_trace() -> None:
    """With `speed` all times are those of the run's own clock."""
    sink = Recorder()
    agent = Scripted(submit(), think_s=1.0)
    began = anyio.current_time()
    result = await Bus({"a": agent}, Setup(speed=20.0), sink=sink).run("?")
    assert anyio.current_time() - began == pytest.approx(1.0)
    assert result.seconds == 20.0


# --- a journal that fails -------------------------------------------------------------------


@pytest.mark.parametrize("fail_at", range(1, 9))
async def test_a_sink_that_fails_ends_the_run_with_its_very_error(fail_at: int) -> None:
    """Wherever it fails: the bare exception, no group around it, and no task is left."""
    error = OSError("the disk is full")
    sink = Recorder(fail_at, error)
    bus = Bus({"a": Scripted(tell("b")), "b": Scripted(submit(), think_s=1.0)}, sink=sink)
    async with no_task_left():
        with pytest.raises(OSError, match="disk is full") as raised:
            await bus.run("?", ["a"])
    assert raised.value is error
    assert len(sink) == fail_at
    assert bus.result.outcome == "error" and bus.result.answer is None


async def test_a_sink_that_fails_at_the_first_or_last_record() -> None:
    """The same holds for `run` and `finish`."""
    for fail_at in (0, 11):
        sink = Recorder(fail_at)
        bus = Bus({"a": Scripted(tell("b")), "b": Scripted(submit())}, sink=sink)
        with pytest.raises(OSError, match="disk is full"):
            await bus.run("?", ["a"])
        assert len(sink) == fail_at


async def test_a_sink_that_fails_while_an_agent_injects_ends_the_run_at_once() -> None:
    """The run does not go on without a journal until its time limit."""

    async def nosy(view: View) -> Decision:
        bus.inject("more", ["a"])
        return Decision.wait()

    sink = Recorder(4)
    bus = Bus({"a": nosy}, sink=sink)
    with pytest.raises(OSError, match="disk is full"):
        await bus.run("?")
    assert bus.result.seconds == 0.0


async def test_a_payload_that_is_no_json_is_refused_and_harms_nobody() -> None:
    """Whoever injects it is told; the run goes on."""
    async with Bus({"a": Scripted(submit())}).open() as bus:
        with pytest.raises(Exception, match="JSON"):
            bus.inject(object())
        bus.inject(Output("?", ("a",)))
        await bus.wait()
    assert bus.result.outcome == "submitted"
