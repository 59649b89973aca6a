"""Wrapping changes nothing: what a team does, when, and in which order, is the same without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from types import coroutine
from typing import Any

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from dig.adapters import Mode
from tests.conservation import Allowed
from tests.helpers import backends

from .scripted import NAMES, Script, Team, mood, scripts
from .watching import Clock, watched

Outcome = tuple[Any, list[tuple[Any, ...]]]


def outcome_of(error: BaseException) -> Any:
    if isinstance(error, BaseExceptionGroup):
        return (type(error).__name__, sorted(map(repr, map(outcome_of, error.exceptions))))
    return (type(error).__name__, str(error))


async def ask(team: Team, entries: list[tuple[str, Script]]) -> Outcome:
    """What becomes of some requests, one after the other."""
    results: list[Any] = []
    async with anyio.create_task_group() as team.background:
        for name, script in entries:
            try:
                results.append(await team.agents[name](script))
            except Exception as error:
                results.append(outcome_of(error))
            results.append(mood.get())
    return results, team.log


def comparable(outcome: Outcome) -> Any:
    """An outcome without the order in which tasks were cancelled: asyncio has them in a set."""
    results, log = outcome
    cut = [entry for entry in log if str(entry[-1]).startswith("Cancel")]
    return results, [entry for entry in log if entry not in cut], sorted(cut, key=repr)


def on_loop(backend: str, mode: Mode | None, entries: list[tuple[str, Script]]) -> Outcome:
    """The same on an event loop in virtual time; mode ``None``: not wrapped."""

    async def main() -> Outcome:
        team, began = Team(), anyio.current_time()
        team._now = lambda: anyio.current_time() - began
        if mode is None:
            return await ask(team, entries)
        clock = Clock()
        with watched(team.agents, mode, clock=clock) as it:
            outcome = await ask(team, entries)
            clock.now += 1_000
            it.session.tick()
            it.must_be_sound()
            assert not {"MC", "DL", "OE"} & set(it.patterns)
            return outcome

    trio._core._run._r.seed(0)
    name, options = backends()[backend]()
    result: Outcome = anyio.run(main, backend=name, backend_options=options)
    return result


@pytest.fixture
def orderly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trio shuffles its tasks; in these tests it shuffles them alike in each run."""
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)


ENTRIES = st.lists(st.tuples(st.sampled_from(NAMES), scripts()), min_size=1, max_size=2)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_a_team_does_the_same_at_the_same_times_in_the_same_order(
    backend: str, mode: Mode, orderly: None
) -> None:
    """Results, exceptions, context variables, order and times are equal; the trace is sound.

    In mode `heal` too: agents that do not look at notes do not notice.
    """

    @settings(max_examples=20, deadline=None)
    @given(ENTRIES)
    def equal(entries: list[tuple[str, Script]]) -> None:
        wrapped, bare = (on_loop(backend, how, entries) for how in (mode, None))
        assert comparable(wrapped) == comparable(bare)

    equal()


# --- cancellation at every await ------------------------------------------------------------


class Cut(BaseException):
    """How a scheduler of its own cancels."""


@coroutine
def pause(seconds: float) -> Generator[float, None, None]:
    """An await that a scheduler of our own sees."""
    yield seconds


def driven(
    make: Callable[[], Awaitable[Any]], cut_at: int | None, how: type[BaseException]
) -> tuple[Any, int]:
    """Drive a coroutine by hand; at await number `cut_at` throw something into it."""
    coro: Any = make()
    awaits = 0
    try:
        while True:
            if awaits == cut_at:
                if how is GeneratorExit:
                    coro.close()
                    return "closed", awaits
                coro.throw(how("cut"))
            else:
                coro.send(None)
            awaits += 1
    except StopIteration as stop:
        return stop.value, awaits
    except BaseException as error:
        return outcome_of(error), awaits


def by_hand(
    script: Script, cut_at: int | None, how: type[BaseException], mode: Mode | None
) -> tuple[Any, int, list[tuple[Any, ...]]]:
    mood.set(0)
    team = Team(pause, lambda: 0.0)
    if mode is None:
        return *driven(lambda: team.agents["ann"](script), cut_at, how), team.log
    clock = Clock()
    with watched(team.agents, mode, clock=clock) as it:
        result, awaits = driven(lambda: team.agents["ann"](script), cut_at, how)
        clock.now += 1_000
        it.session.tick()
        it.must_be_sound(allowed=Allowed(interference=True))
        assert not {"MC", "DL", "OE"} & set(it.patterns)
    return result, awaits, team.log


@pytest.mark.parametrize("how", [Cut, GeneratorExit, KeyboardInterrupt])
@pytest.mark.parametrize("mode", ["observe", "heal"])
@settings(max_examples=12, deadline=None)
@given(script=scripts(concurrent=False))
def test_cancelled_at_any_await_it_ends_as_it_would_have(
    how: type[BaseException], mode: Mode, script: Script
) -> None:
    """The exception comes out as it went in, the same code runs, and nothing stays open."""
    _, awaits, _ = by_hand(script, None, how, None)
    for cut_at in (None, *range(awaits)):
        assert by_hand(script, cut_at, how, mode) == by_hand(script, cut_at, how, None)
