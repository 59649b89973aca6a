"""Requests that overlap: tasks that are cancelled, threads, and what a long session leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread
from typing import Any

import anyio
import pytest
from hypothesis import given, settings

from dig.adapters import Mode
from tests.helpers import VirtualLoop

from .scripted import Script, Team, scripts
from .test_observing import comparable, outcome_of
from .watching import Clock, Watched, watched


def cancelled_after(steps: int, call: Callable[[], Any]) -> tuple[Any, int, bool]:
    """Cancel a task after some rounds of its loop.

    Returns:
        What became of it, how often it is still being cancelled, and whether it had ended before.
    """
    loop = VirtualLoop()

    async def main() -> Any:
        return await call()

    def count(left: int) -> None:
        if left == 0:
            task.cancel()
        elif not task.done():
            loop.call_soon(count, left - 1)

    task = loop.create_task(main())
    loop.call_soon(count, steps)
    try:
        result = loop.run_until_complete(task)
    except BaseException as error:
        result = outcome_of(error)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    return result, task.cancelling(), not task.cancelled()


def with_cancellation(script: Script, steps: int, mode: Mode | None) -> tuple[Any, bool]:
    """What becomes of a request, and whether it ended before it was cancelled."""
    team = Team(now=lambda: 0.0)
    if mode is None:
        ended = cancelled_after(steps, lambda: team.agents["ann"](script))
        return comparable((ended, team.log)), ended[2]
    clock = Clock()
    with watched(team.agents, mode, clock=clock) as it:
        ended = cancelled_after(steps, lambda: team.agents["ann"](script))
        must_be_at_rest(it, clock)
    return comparable((ended, team.log)), ended[2]


def must_be_at_rest(it: Watched, clock: Clock) -> None:
    """Nothing is going on, and nothing will be found that nobody can do anything about."""
    clock.now += 1_000
    it.session.tick()
    assert set(it.session.monitor.graph.agents) == {*it.session.monitor.graph.run.agents}
    it.must_be_sound()
    assert not {"MC", "DL", "OE"} & set(it.patterns)


@pytest.mark.parametrize("mode", ["observe", "heal"])
@settings(max_examples=8, deadline=None)
@given(script=scripts())
def test_a_task_may_be_cancelled_at_any_step_of_its_loop(mode: Mode, script: Script) -> None:
    """With calls at once too: the same is raised, once, and nothing stays open."""
    for steps in range(40):
        bare, is_over = with_cancellation(script, steps, None)
        assert with_cancellation(script, steps, mode)[0] == bare
        if is_over:
            break


@pytest.mark.anyio
async def test_overlapping_requests_are_instances_that_go_again() -> None:
    """Two hundred requests at once, and two hundred more: agents come and go, none is left."""
    team = Team()
    script: Script = (("nap", 0.1), ("both", ("bob", (("nap", 0.1),)), ("bob", ())))
    clock = Clock()
    with watched(team.agents, clock=clock) as it:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(team.agents["ann"], script)
        joined = {row["agent"] for row in it.rows("join")}
        must_be_at_rest(it, clock)
        assert it.session.statistics().requests == 200
        assert it.patterns == []
    assert {name for name in joined if name.startswith("ann")} == {
        f"ann#{number}" for number in range(2, 101)
    }


def test_threads_may_share_a_team() -> None:
    """Each with a loop of its own: every request is answered, and the trace is sound."""
    team, clock = Team(), Clock()
    script: Script = (("call", "bob", (("nap", 0.0), ("call", "cyd", ()))), ("call", "dan", ()))
    answers: list[Any] = []

    async def requests() -> None:
        for _ in range(20):
            answers.append(await team.agents["ann"](script))

    with watched(team.agents, "heal", clock=clock) as it:
        threads = [Thread(target=anyio.run, args=(requests,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        must_be_at_rest(it, clock)
        assert it.session.statistics().turns == 80 * 4
    assert answers == [[["nap", []], []]] * 80


def test_a_long_session_keeps_nothing_of_what_is_over() -> None:
    """After many requests nothing is held for them: no turns, no seats, no payloads."""
    team, clock = Team(), Clock()
    script: Script = (("both", ("bob", (("call", "cyd", ()),)), ("bob", (("fail",),))),)

    async def requests(count: int) -> None:
        for _ in range(count):
            with pytest.raises(ExceptionGroup):
                await team.agents["ann"](script)

    def kept(it: Watched) -> list[int]:
        session = it.session
        recorder = session.monitor._recorder
        return [
            len(session._turns), len(session.instances._begun), len(session.instances._agents),
            len(session.holds._gates), len(recorder.payloads._carried), len(recorder.graph.live),
        ]  # fmt: skip

    with watched(team.agents, "heal", clock=clock) as it:
        asyncio.run(requests(2))
        before = kept(it)
        asyncio.run(requests(60))
        assert kept(it) == before
        must_be_at_rest(it, clock)
