"""Agents of all kinds: functions, async generators, objects that are called; each as alone."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from queue import Queue
from typing import Any, NamedTuple
from unittest.mock import AsyncMock

import anyio
import anyio.lowlevel
import pytest

import dig
from dig import Budget, Hold
from dig.adapters.base import payload as payloads
from dig.graph.records import Emit
from dig.traces.verify import verify

from .test_faults import Flags, Healing, note
from .watching import Watched, setup_of, watched

pytestmark = pytest.mark.anyio

Team = dict[str, Any]


def said(watch: Watched) -> list[tuple[Any, ...]]:
    emits = [record for record in watch.trace if isinstance(record, Emit)]
    return [
        (one.to, one.payload) for one in emits if not (one.type == "notice" and one.payload is None)
    ]


# --- functions that are not async ---


def desk() -> Team:
    team: Team = {}

    def lead(task: str) -> str:
        return f"{team['writer'](task)}, {team['critic'](task)}"

    def writer(task: str) -> str:
        return f"text about {task}"

    def critic(task: str) -> str:
        if task == "nothing":
            raise LookupError(task)
        return f"{task} is fine"

    team.update(lead=lead, writer=writer, critic=critic)
    return team


async def test_functions_are_agents() -> None:
    """A call between them is a message and its answer, in the calling thread."""
    team = desk()
    bare = team["lead"]("rain")
    with watched(team) as watch:
        assert team["lead"]("rain") == bare == "text about rain, rain is fine"
        watch.must_be_sound()
    assert said(watch) == [
        (("lead",), "rain"), (("writer",), "rain"), (("lead",), "text about rain"),
        (("critic",), "rain"), (("lead",), "rain is fine"), ((), bare),
    ]  # fmt: skip
    assert team["writer"]("x") == "text about x"


async def test_a_function_that_raises_raises_as_alone() -> None:
    """Its caller gets the exception itself, and nothing stays open."""
    team = desk()
    with watched(team) as watch:
        with pytest.raises(LookupError, match="nothing"):
            team["lead"]("nothing")
        watch.must_be_sound()
    assert said(watch)[-1] == (("lead",), {"error": "LookupError: nothing"})
    assert [finding.stage for finding in watch.session.findings] == ["turn", "request"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_functions_and_async_agents_call_each_other(backend: str) -> None:
    """A function in a thread that has the context of its caller belongs to that."""
    team: Team = {}

    async def lead(task: str) -> list[str]:
        here = team["worker"](task)
        return [here, await anyio.to_thread.run_sync(team["worker"], "there")]

    def worker(task: str) -> str:
        return f"{task} {threading.current_thread() is threading.main_thread()}"

    team.update(lead=lead, worker=worker)
    with watched(team) as watch:
        assert anyio.run(team["lead"], "here", backend=backend) == ["here True", "there False"]
        watch.must_be_sound()
    assert [to for to, _ in said(watch)] == [
        ("lead",), ("worker",), ("lead",), ("worker",), ("lead",), (),
    ]  # fmt: skip


def test_functions_may_be_called_from_many_threads_at_once() -> None:
    """Each call without a caller comes from outside."""
    team, answers = desk(), list[str]()
    with watched(team) as watch:
        threads = [
            threading.Thread(target=lambda: answers.append(team["lead"]("rain"))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == ["text about rain, rain is fine"] * 8
        assert watch.session.statistics().requests == 8
        watch.must_be_sound()


async def test_a_function_may_return_what_is_awaited() -> None:
    """The agent is at work until that has ended."""
    team: Team = {}

    async def worker(task: str) -> str:
        await anyio.lowlevel.checkpoint()
        return f"done {task}"

    team.update(lead=lambda task: team["worker"](task + "!"), worker=worker)
    with watched(team) as watch:
        call = team["lead"]("rain")
        assert inspect.iscoroutine(call)
        assert await call == "done rain!"
        watch.must_be_sound()
    assert said(watch)[1:] == [
        (("worker",), "rain!"), (("lead",), "done rain!"), ((), "done rain!"),
    ]  # fmt: skip


async def test_healing_reaches_functions_too() -> None:
    """Notes come as `notes`, and an answer that lacks work goes back if that is allowed."""
    seen: list[tuple[str, ...]] = []

    def agent(task: str, notes: tuple[str, ...] = ()) -> str:
        seen.append(notes)
        return task

    team: Team = {"agent": agent}
    healer = Healing(note)
    with watched(
        team, "heal", healers=lambda: {"RSP": healer}, budget=Budget(),
        setup={"detectors": lambda: [Flags()]},
    ) as watch:  # fmt: skip
        assert team["agent"]("rain") == "rain"
        assert dig.notes() == ()
    assert seen and seen[0]
    assert watch.session.statistics().faults == 0


class Slow:
    """A gate that lets everything pass after a while, and tells what."""

    name = "slow"

    def __init__(self) -> None:
        self.decided: list[str] = []

    def hold(self, graph: Any, event: Any) -> Hold:
        return Hold(60.0)

    async def decide(self, event: Any) -> None:
        await anyio.sleep(0.01)
        self.decided.append(event.type)


@pytest.mark.parametrize("is_looped", [True, False])
def test_a_gate_keeps_the_call_of_a_function_where_no_loop_runs(is_looped: bool) -> None:
    """A thread waits for it; a running loop cannot, so there the call goes on at once."""
    gate, team = Slow(), {"agent": lambda task: task}

    async def looped() -> Any:
        return team["agent"]("rain")

    with watched(team, "heal", gates=[gate]) as watch:
        assert (anyio.run(looped) if is_looped else team["agent"]("rain")) == "rain"
        watch.must_be_sound()
    assert gate.decided == ([] if is_looped else ["solution"])


# --- async generators ---


class Tap:
    """An agent that yields, and tells what reaches it."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    async def stream(self, words: list[str]) -> AsyncIterator[str]:
        try:
            for word in words:
                if word == "fail":
                    raise LookupError(word)
                try:
                    self.log.append((yield word))
                except KeyError as error:
                    self.log.append(repr(error))
                    yield "caught"
                await anyio.lowlevel.checkpoint()
        except BaseException as error:
            self.log.append(type(error).__name__)
            raise
        finally:
            self.log.append("closed")


async def _all(stream: Any, log: list[Any]) -> None:
    async for item in stream:
        log.append(item)


async def _two(stream: Any, log: list[Any]) -> None:
    async with aclosing(stream) as items:
        log.append(await anext(items))
        log.append(await anext(items))


async def _sends(stream: Any, log: list[Any]) -> None:
    log.append(await stream.asend(None))
    log.append(await stream.asend("more"))
    log.append(await stream.athrow(KeyError("thrown")))
    log.append(await stream.asend("on"))
    await stream.aclose()
    await stream.aclose()


async def _never(stream: Any, log: list[Any]) -> None:
    await stream.aclose()
    log.append([item async for item in stream])


async def _cancelled(stream: Any, log: list[Any]) -> None:
    with anyio.CancelScope() as scope:
        async for item in stream:
            log.append(item)
            scope.cancel()


async def _thrown(stream: Any, log: list[Any]) -> None:
    log.append(await anext(stream))
    await stream.athrow(ValueError("out"))


ways = pytest.mark.parametrize(
    "way", [_all, _two, _sends, _never, _cancelled, _thrown], ids=lambda way: way.__name__
)


@ways
@pytest.mark.parametrize("words", [["a", "b", "c"], ["a", "fail", "c"], []])
@pytest.mark.parametrize("mode", ["observe", "heal"])
async def test_a_stream_is_the_same_as_alone(way: Any, words: list[str], mode: Any) -> None:
    """Items pass as they come; what is sent, thrown and closed reaches the agent."""
    outcomes = []
    for is_watched in (False, True):
        tap = Tap()
        team: Team = {"tap": tap.stream}
        log: list[Any] = []

        async def drive(team: Team = team, log: list[Any] = log) -> None:
            try:
                await way(team["tap"](words), log)
            except Exception as error:
                log.append(repr(error))

        if is_watched:
            with watched(team, mode) as watch:
                await drive()
                watch.must_be_sound()
        else:
            await drive()
        outcomes.append((tap.log, log))
    assert outcomes[0] == outcomes[1]


async def test_the_event_of_a_stream_is_what_was_yielded() -> None:
    """Also if its reader has enough early; a reader that is an agent goes on in between."""
    team: Team = {}

    async def lead(task: str) -> str:
        words = []
        async for word in team["tap"](["a", "b", "c"]):
            words.append(await team["check"](word))
            if word == task:
                break
        await team["check"]("last")
        return " ".join(words)

    async def check(word: str) -> str:
        return word.upper()

    team.update(lead=lead, tap=Tap().stream, check=check)
    with watched(team) as watch:
        assert await team["lead"]("z") == "A B C"
        watch.must_be_sound()
    assert (("lead",), ["a", "b", "c"]) in said(watch)
    with watched({"tap": Tap().stream}) as watch, pytest.raises(LookupError):
        await _all(team["tap"](["fail"]), [])
    team = {"tap": Tap().stream}
    with watched(team) as watch:
        await _two(team["tap"](["a", "b", "c"]), [])
        watch.must_be_sound()
    assert said(watch)[-1] == ((), ["a", "b"])


async def test_a_long_stream_is_cut_in_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first items stay, with the number and a digest of all; streams that differ differ."""
    monkeypatch.setattr(payloads, "MOST_STREAMED", 30)
    cut = []
    for last in ("x", "x", "y"):
        team: Team = {"tap": Tap().stream}
        with watched(team) as watch:
            await _all(team["tap"](["word"] * 20 + [last]), [])
        cut.append(said(watch)[-1][1])
    assert cut[0] == cut[1] != cut[2]
    assert set(cut[0]) == {"$cut", "$pieces", "$first"}
    assert (cut[0]["$pieces"], cut[0]["$first"]) == (21, ["word"] * 5)


async def test_a_gate_keeps_a_stream_before_its_first_item_and_at_its_end() -> None:
    """The items in between are handed over as they come."""
    gate, log = Slow(), list[Any]()

    async def lead(task: str) -> None:
        async for item in team["tap"](["a", "b"]):
            log.append((item, len(gate.decided)))
        log.append(len(gate.decided))

    team: Team = {"lead": lead, "tap": Tap().stream}
    with watched(team, "heal", gates=[gate]) as watch:
        await team["lead"]("x")
        watch.must_be_sound()
    assert log == [("a", 1), ("b", 1), 2]
    assert gate.decided == ["message", "message", "solution"]


# --- objects ---


@dataclass
class Worker:
    """An object with methods, attributes and a call."""

    name: str = "worker"
    memory: list[str] = field(default_factory=list)

    async def __call__(self, task: str) -> str:
        self.memory.append(task)
        return f"{self.name}: {task}"

    def forget(self) -> None:
        self.memory.clear()


@dataclass
class Pair:
    """Two agents, a helper, and methods of all kinds."""

    seen: list[str] = field(default_factory=list)

    async def ask(self, task: str) -> str:
        self.seen.append(task)
        return str(await self.answer(task + "?"))

    async def answer(self, task: str) -> str:
        return self.shout(task) + "!"

    @staticmethod
    async def tell(task: str) -> str:
        return task

    @classmethod
    async def make(cls, task: str) -> str:
        return f"{cls.__name__} {task}"

    def shout(self, task: str) -> str:
        return task.upper()


class Slotted:
    """An object without a dict."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, task: str) -> str:
        self.asked += 1
        return task


async def test_an_object_that_is_called_stays_that_object() -> None:
    """Its attributes and methods are there, and code that has it itself is seen, too."""
    worker = Worker()
    team = {"worker": worker}
    with watched(team) as watch:
        assert team["worker"] is worker
        assert await worker("rain") == "worker: rain"
        worker.forget()
        assert worker.memory == []
        assert await Worker("other")("sun") == "other: sun"
        watch.must_be_sound()
    assert said(watch) == [(("worker",), "rain"), ((), "worker: rain")]
    assert await worker("wind") == "worker: wind"
    assert "__call__" in vars(Worker) and inspect.isfunction(vars(Worker)["__call__"])


@pytest.mark.parametrize("duplicate", [
    copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)),
], ids=["copy", "deepcopy", "pickle"])  # fmt: skip
async def test_copies_of_what_is_watched_are_as_of_the_bare_one(
    duplicate: Callable[[Any], Any],
) -> None:
    """A copy has its own methods, is equal, and is not watched."""
    for bare in (Pair(["x"]), Worker("ann", ["x"])):
        with watched({"one": bare}) as watch:
            twin = duplicate(bare)
            assert type(twin) is type(bare)
            assert vars(twin) == vars(duplicate(bare)) == vars(bare)
            assert twin == bare
            await (twin.ask if isinstance(twin, Pair) else twin)("rain")
            assert watch.session.statistics().requests == 0
        if duplicate is not copy.copy:
            assert "rain" not in (bare.seen if isinstance(bare, Pair) else bare.memory)


async def test_methods_look_as_alone() -> None:
    """To `inspect`, `pickle` and `copy` they are methods of their object."""
    pair = Pair()
    before = {name: getattr(pair, name) for name in ("ask", "answer", "tell", "make", "shout")}
    with watched(pair):
        assert vars(pair) == {"seen": []}
        for name, bare in before.items():
            now = getattr(pair, name)
            for look in (
                inspect.signature, inspect.ismethod, inspect.isfunction, inspect.isroutine,
                inspect.iscoroutinefunction, inspect.getsource, inspect.getdoc,
                inspect.getmodule,
            ):  # fmt: skip
                assert look(now) == look(bare), (name, look)
            assert getattr(now, "__self__", None) is getattr(bare, "__self__", None)
            assert (now.__name__, now.__qualname__) == (bare.__name__, bare.__qualname__)
            assert getattr(Pair, name) == getattr(Pair, name)
        assert inspect.isfunction(Pair.ask)
        other = copy.deepcopy(pair.ask)
        assert await other("x") == "X?!"
        assert pickle.loads(pickle.dumps(pair.ask)).__self__ == pair
        assert pair.seen == []


async def test_an_object_may_be_in_two_teams() -> None:
    """Both see its calls; each is taken out by itself, in any order."""
    for order in ((0, 1), (1, 0)):
        pair = Pair()
        teams: list[Team] = [{"one": pair}, {"two": pair}]
        for team in teams:
            dig.wrap(team)
        assert await pair.ask("x") == "X?!"
        assert [dig.session_of(team).statistics().turns for team in teams] == [2, 2]
        for number in order:
            dig.unwrap(teams[number])
        assert await pair.ask("y") == "Y?!"
        assert inspect.isfunction(inspect.getattr_static(Pair, "ask"))


async def test_an_object_without_a_dict_can_be_watched() -> None:
    """Its methods are replaced beside it."""
    one, other = Slotted(), Slotted()
    with watched({"one": one}) as watch:
        assert await one.ask("x") == await other.ask("x") == "x"
        assert watch.session.statistics().requests == 1
    assert (one.asked, other.asked) == (1, 1)


class Clerk:
    """An object of which no method is async."""

    def __init__(self) -> None:
        self.filed: list[str] = []

    def file(self, paper: str) -> int:
        self.filed.append(paper)
        return len(self.filed)

    def burn(self) -> None:
        self.filed.clear()


@pytest.mark.parametrize("make", [lambda clerk: clerk, lambda clerk: {"clerk": clerk}])
async def test_methods_that_are_not_async_are_agents_if_no_other_is(make: Any) -> None:
    """Of an object that is the team, and of one in it."""
    clerk = Clerk()
    with watched(make(clerk)) as watch:
        assert clerk.file("a") == 1
        clerk.burn()
        assert watch.session.statistics().requests == 2
        watch.must_be_sound()


# --- teams that have more than agents ---


class Settings(NamedTuple):
    """A tuple with names, one of them an agent's."""

    limit: int
    worker: Any


async def _worker(task: str) -> str:
    return task


def _counts() -> Iterator[int]:
    yield 1


async def test_what_is_not_watched_is_said_once_by_name(caplog: pytest.LogCaptureFixture) -> None:
    """Values that are no agents are left as they are, and the others are watched."""
    pair, queue = Pair(), Queue[str]()
    team: Team = {
        "pair": pair, "worker": _worker, "limit": 3, "title": "a team", "kind": Pair,
        "inbox": queue, "counts": _counts, "nothing": None, "old": lru_cache(len),
    }  # fmt: skip
    bare = dict(team)
    dig.wrap(team)
    try:
        for _ in range(2):
            assert await team["pair"].ask("x") == "X?!"
        for name in ("limit", "title", "kind", "inbox", "counts", "nothing", "pair"):
            assert team[name] is bare[name]
        assert {*dig.session_of(team).monitor.graph.agents} == {"pair", "worker", "old"}
    finally:
        dig.unwrap(team)
    assert team == bare
    [record] = caplog.records
    text = record.getMessage()
    for name in ("limit", "title", "kind", "inbox", "counts", "nothing", "pair.shout"):
        assert f"{name} (" in text
    assert "worker" not in text


async def test_a_team_of_agents_alone_is_wrapped_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There is nothing to be said."""
    dig.unwrap(dig.wrap({"worker": _worker, "called": Worker()}))
    assert caplog.records == []


@pytest.mark.parametrize("team", [(1, _worker), Settings(1, _worker)])
async def test_a_tuple_is_wrapped_as_another_one(team: Any) -> None:
    """The user goes on with a tuple of the same type; the old one is as it was."""
    wrapped = dig.wrap(team)
    assert type(wrapped) is type(team) and wrapped[0] == 1
    assert await wrapped[1]("x") == "x"
    assert await team[1]("x") == "x"
    assert dig.session_of(wrapped).statistics().requests == 1
    assert dig.unwrap(wrapped) is team


async def test_doubles_of_tests_and_partials_are_agents() -> None:
    """They are called as alone, and keep what they count."""
    double = AsyncMock(return_value="yes")
    team: Team = {"double": double, "part": partial(_worker, "x")}
    with watched(team) as watch:
        assert await team["double"]("?") == "yes"
        assert await team["part"]() == "x"
        double.assert_awaited_once_with("?")
        watch.must_be_sound()
        assert watch.session.statistics().requests == 2


async def test_a_journal_of_all_kinds_is_sound(tmp_path: Any) -> None:
    """The independent checker has nothing to say."""
    team: Team = {}

    async def lead(task: str) -> Any:
        return [team["clerk"].file(task), [item async for item in team["tap"](["a"])]]

    team.update(lead=lead, clerk=Clerk(), tap=Tap().stream, limit=3)
    dig.wrap(team, journal=tmp_path, setup=setup_of())
    directory = dig.session_of(team).directory
    assert await team["lead"]("x") == [1, ["a"]]
    dig.unwrap(team)
    assert directory is not None
    assert verify(directory / "trace.dig.jsonl").problems == []
