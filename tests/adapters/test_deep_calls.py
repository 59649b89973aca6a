"""Agents that call each other deeply: as deep as alone, and everything else as alone, too."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from typing import Any

import anyio
import pytest

import dig
from dig.adapters.base.trampoline import SEGMENT
from tests.helpers import backends

DEEP = 3 * SEGMENT + 5

Team = dict[str, Any]


def both(make: Callable[[Team, list[Any]], None], ask: Any, backend: str) -> list[Any]:
    """What a team logs and answers, alone and watched."""
    seen = []
    for is_watched in (False, True):
        team: Team = {}
        log: list[Any] = []
        make(team, log)
        if is_watched:
            dig.wrap(team)
        name, options = backends()[backend]()
        try:
            answer = anyio.run(ask, team, backend=name, backend_options=options)
        except Exception as error:
            answer = repr(error)
        if is_watched:
            statistics = dig.session_of(team).statistics()
            assert (statistics.faults, statistics.missed, statistics.open_turns) == (0, 0, 0)
            dig.unwrap(team)
        seen.append((answer, log))
    return seen


@pytest.fixture
def limit() -> Iterator[int]:
    """A low limit of the interpreter, so that calls come to it soon."""
    before, low = sys.getrecursionlimit(), 300
    sys.setrecursionlimit(low)
    yield low
    sys.setrecursionlimit(before)


async def down_from_deep(team: Team) -> Any:
    return await team["down"](DEEP)


each_backend = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@each_backend
def test_agents_may_hand_on_to_each_other_as_deeply_as_alone(backend: str, limit: int) -> None:
    """Two agents with a frame each reach nearly the interpreter's limit, then come back."""
    calls = (limit - 130) // 2

    def make(team: Team, log: list[Any]) -> None:
        async def sales(count: int) -> int:
            return int(await team["tech"](count))

        async def tech(count: int) -> int:
            if count == 0:
                await anyio.sleep(0.1)
                return 0
            return int(await team["sales"](count - 1)) + 1

        team.update(sales=sales, tech=tech)

    alone, watched = both(make, lambda team: team["sales"](calls), backend)
    assert alone == watched == (calls, [])


@pytest.mark.sampled(2)
@each_backend
def test_agents_that_never_end_reach_the_limit_as_alone(backend: str, limit: int) -> None:
    """Each of them gets the exception, the innermost first, and the monitoring goes on."""

    def make(team: Team, log: list[Any]) -> None:
        def calls(other: str) -> Callable[[int], Awaitable[None]]:
            async def call(count: int) -> None:
                try:
                    await team[other](count + 1)
                except RecursionError:
                    log.append(count)
                    raise

            return call

        team.update(down=calls("again"), again=calls("down"))  # each of one name has its stack told

    alone, watched = both(make, lambda team: team["down"](0), backend)
    assert alone[0].startswith("RecursionError('maximum recursion depth exceeded")
    assert watched[0] == "RecursionError('maximum recursion depth exceeded')"
    for _, log in (alone, watched):
        assert log == [*range(log[0], -1, -1)]
        assert limit / 2 < log[0] < 1.2 * limit
    assert watched[1][0] >= alone[1][0]


@each_backend
def test_exceptions_pass_through_deep_calls_as_alone(backend: str) -> None:
    """Their contexts, and what an agent is told to be handled above it, are the same."""

    def make(team: Team, log: list[Any]) -> None:
        async def down(count: int) -> int:
            log.append((count, repr(sys.exc_info()[1])))
            try:
                if count == 0:
                    raise ValueError(count)
                return int(await team["down"](count - 1))
            except ValueError as error:
                log.append((count, repr(error), repr(error.__context__)))
                try:
                    await team["other"](count)
                except KeyError as other:
                    log.append((count, repr(other), repr(other.__context__)))
                    if count % 3:
                        return count
                raise

        async def other(count: int) -> None:
            log.append(("other", count, repr(sys.exc_info()[1])))
            raise KeyError(count)

        team.update(down=down, other=other)

    alone, watched = both(make, down_from_deep, backend)
    assert alone == watched


@each_backend
def test_what_is_handled_while_agents_call_deeply_stays_the_context(backend: str) -> None:
    """Each level calls the next one while it handles an exception."""

    def make(team: Team, log: list[Any]) -> None:
        async def down(count: int) -> Any:
            try:
                raise LookupError(count)
            except LookupError:
                log.append(repr(sys.exc_info()[1]))
                if count == 0:
                    raise ValueError from None
                await team["down"](count - 1)

        team["down"] = down

    async def chain(team: Team) -> list[str]:
        try:
            await team["down"](DEEP)
        except ValueError as error:
            found: BaseException | None = error
            contexts = []
            while found is not None:
                contexts.append(repr(found))
                found = found.__context__
            return contexts
        return []

    alone, watched = both(make, chain, backend)
    assert alone == watched
    assert "LookupError(0)" in alone[0]


@each_backend
def test_a_cancellation_reaches_the_innermost_agent_first(backend: str) -> None:
    """Each agent on the way sees it once, and may wait while it tidies up."""

    def make(team: Team, log: list[Any]) -> None:
        async def down(count: int) -> None:
            try:
                if count == 0:
                    await anyio.sleep(60)
                await team["down"](count - 1)
            except BaseException as error:
                log.append((count, type(error).__name__))
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(0.01)
                log.append(count)
                raise

        team["down"] = down

    async def cancelled(team: Team) -> Any:
        with anyio.move_on_after(1) as scope:
            await team["down"](DEEP)
        return scope.cancelled_caught

    alone, watched = both(make, cancelled, backend)
    assert alone == watched
    assert alone[0] is True and len(alone[1]) == 2 * (DEEP + 1)


def test_a_call_that_is_closed_closes_all_agents_within() -> None:
    """A coroutine that is given up runs their `finally` blocks, the innermost first."""

    def make(team: Team, log: list[Any]) -> None:
        async def down(count: int) -> None:
            try:
                if count == 0:
                    await asyncio.Event().wait()
                await team["down"](count - 1)
            finally:
                log.append((count, repr(sys.exc_info()[1])))

        team["down"] = down

    async def closed(team: Team) -> None:
        call = team["down"](DEEP)
        call.send(None)
        call.close()

    alone, watched = both(make, closed, "asyncio")
    assert alone == watched
    assert len(alone[1]) == DEEP + 1


def _by_hand(call: Any) -> Any:
    """Run a coroutine that awaits nothing, without a loop."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it has awaited something")


async def _directly(call: Awaitable[Any]) -> Any:
    return await call


async def _in_a_task(call: Any) -> Any:
    return await asyncio.create_task(call)


async def _in_a_group(call: Any) -> Any:
    return (await asyncio.gather(call, asyncio.sleep(0)))[0]


async def _in_a_generator(call: Any) -> Any:
    async def items() -> Any:
        yield await call

    async with aclosing(items()) as every:
        return await anext(every)


async def _run_by_hand(call: Any) -> Any:
    return _by_hand(call)


async def _in_a_thread(call: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(call)))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize(
    "way",
    [_directly, _in_a_task, _in_a_group, _in_a_generator, _run_by_hand, _in_a_thread],
    ids=lambda way: way.__name__,
)
def test_agents_may_run_each_other_in_any_way(way: Callable[[Any], Awaitable[Any]]) -> None:
    """Whatever stands between two agents gets from the call what it gets alone."""

    def make(team: Team, log: list[Any]) -> None:
        async def down(count: int) -> Any:
            log.append(count)
            return count and [count, await way(team["down"](count - 1))]

        team["down"] = down

    alone, watched = both(make, down_from_deep, "asyncio")
    assert alone == watched


def test_a_team_that_is_not_deep_has_all_its_frames() -> None:
    """A debugger that follows what a task awaits comes to the innermost agent."""
    names = []

    async def look() -> None:
        team: Team = {}

        async def lead(task: str) -> None:
            await team["worker"](task)

        async def worker(task: str) -> None:
            await asyncio.sleep(60)

        team.update(lead=lead, worker=worker)
        dig.wrap(team)
        call = team["lead"]("x")
        task = asyncio.create_task(call)
        await asyncio.sleep(0)
        while call is not None and hasattr(call, "cr_code"):
            names.append(call.cr_code.co_name)
            call = call.cr_await
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        dig.unwrap(team)

    asyncio.run(look())
    assert names.index("lead") < names.index("worker")
