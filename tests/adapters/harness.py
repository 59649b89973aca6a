"""Does a wrapper change nothing? One scripted team, bare and wrapped, and all that a host can see.

It knows no framework. A `Scenario` builds a team whose agents tell a `Script` of their turns and
asks it something; `play` runs that in virtual time, with think times drawn from a seed, and
returns an `Outcome` that is compared with `==`. `cancelled_everywhere` cancels the request at
every step of the event loop in turn, which visits every await point.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from inspect import isawaitable
from random import Random
from threading import Thread
from typing import Any, TypeVar, TypeVarTuple
from zlib import crc32

from tests.helpers import VirtualLoop

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

STEPS = 5_000  # of the loop; a scenario that takes more has lost its way


class Script:
    """What scripted agents tell of their turns, and where they get their think times from.

    Think times are functions of the seed, the agent and the number of its turn, so that what
    one agent does changes nothing for the others.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.log: list[tuple[str, str, str]] = []
        self.turns: dict[str, int] = {}
        self.busy = 0
        self.peak = 0

    @asynccontextmanager
    async def turn(self, agent: str, seen: Any = None) -> AsyncIterator[int]:
        """One turn of an agent, around what it does; gives the number of the turn, from 1.

        Args:
            agent: Who acts.
            seen: What it was given; its `repr` is compared.
        """
        self.turns[agent] = number = self.turns.get(agent, 0) + 1
        self.log.append((agent, "sees", canonical(repr(seen))))
        self.busy += 1
        self.peak = max(self.peak, self.busy)
        try:
            await asyncio.sleep(Random(f"{self.seed} {agent} {number}").choice([0, 0.1, 0.2, 1]))
            yield number
        except BaseException as error:
            self.log.append((agent, "raises", type(error).__name__))
            raise
        else:
            self.log.append((agent, "ends", ""))
        finally:
            self.busy -= 1

    async def act(self, agent: str, act: Callable[[Any, int], Any], seen: Any) -> Any:
        """One turn of an agent, in which it does what it does with what it sees, and may raise."""
        async with self.turn(agent, seen) as number:
            does = act(seen, number)
            if isawaitable(does):
                does = await does
            if isinstance(does, BaseException):
                raise does
            return does


class AtOnce(Script):
    """A script whose agents take no time."""

    @asynccontextmanager
    async def turn(self, agent: str, seen: Any = None) -> AsyncIterator[int]:
        self.turns[agent] = self.turns.get(agent, 0) + 1
        yield self.turns[agent]


@dataclass(frozen=True)
class Scenario:
    """A scripted team and what is asked of it.

    Attributes:
        build: Makes the team, whose agents tell the script of their turns.
        drive: Asks something; returns all that comes out, streamed pieces in order.
        in_threads: Whether what is meant for a thread needs one: code may ask for a running loop.
    """

    name: str
    build: Callable[[Script], Any]
    drive: Callable[[Any], Awaitable[Any]]
    in_threads: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass
class Outcome:
    """All that a host can see of one play.

    Attributes:
        returned: The `repr` of what came out.
        raised: Type and text of what was raised, and those of its causes.
        log: Every turn, in order.
        peak: How many agents were at work at the same time.
        elapsed: How long it took, in virtual seconds.
        cancelling: Cancellations of the request that nobody has taken back.
        leaked: Whether a context variable that the caller had set is another one now.
        steps: Steps of the loop; not compared.
    """

    returned: str | None = None
    raised: tuple[tuple[str, str], ...] = ()
    log: list[tuple[str, str, str]] = field(default_factory=list)
    peak: int = 0
    elapsed: float = 0.0
    cancelling: int = 0
    leaked: bool = False
    steps: int = field(default=0, compare=False)

    def per_agent(self) -> dict[str, list[tuple[str, str]]]:
        """What each agent saw and did, in its own order."""
        found: dict[str, list[tuple[str, str]]] = {}
        for agent, what, detail in self.log:
            found.setdefault(agent, []).append((what, detail))
        return found


class StepLoop(VirtualLoop):
    """A virtual loop that counts its steps, and cancels a task before one of them."""

    def __init__(self, cancel_at: int | None = None, *, in_threads: bool = False) -> None:
        super().__init__()
        self.cancel_at = cancel_at
        self.in_threads = in_threads
        self._selector.patience_s = 30.0 if in_threads else 0.0  # type: ignore[attr-defined]
        self.steps = 0
        self.victim: asyncio.Task[Any] | None = None

    def _run_once(self) -> None:
        if self.victim is not None and not self.victim.done():
            self.steps += 1
            if self.steps == self.cancel_at:
                self.victim.cancel("by the test")
            if self.steps > STEPS:
                raise RuntimeError(f"no end after {STEPS} steps")
        super()._run_once()  # type: ignore[misc]

    def run_in_executor(
        self, executor: Any, func: Callable[[*_Ts], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        """Call it here and now, maybe in a thread that is waited for: it has no virtual time."""
        future: asyncio.Future[_T] = self.create_future()

        def call() -> None:
            try:
                future.set_result(func(*args))
            except BaseException as error:
                future.set_exception(error)

        if self.in_threads:
            thread = Thread(target=call)
            thread.start()
            thread.join()
        else:
            call()
        return future


_CALLER: ContextVar[str] = ContextVar("caller", default="nobody")


def play(
    scenario: Scenario,
    wrap: Callable[[Any], Any] = lambda team: team,
    *,
    seed: int = 0,
    cancel_at: int | None = None,
) -> Outcome:
    """Build, wrap and drive a team; see what a host sees.

    Args:
        scenario: Team and request.
        wrap: Puts something round the team, or nothing.
        seed: Decides how long agents think.
        cancel_at: The step of the loop before which the request is cancelled.
    """
    script, outcome = Script(seed), Outcome()

    async def caller() -> None:
        _CALLER.set("caller")
        task = asyncio.current_task()
        assert task is not None
        loop.victim = task
        team = wrap(scenario.build(script))
        try:
            returned = await scenario.drive(team)
            outcome.returned = canonical(repr(returned))
        except BaseException as error:
            outcome.raised = tuple(_chain(error))
        outcome.cancelling = task.cancelling()
        outcome.leaked = _CALLER.get() != "caller"

    loop = StepLoop(cancel_at, in_threads=scenario.in_threads)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        began = loop.time()
        with suppress(asyncio.CancelledError):
            runner.run(caller())
        outcome.elapsed = round(loop.time() - began, 6)
    outcome.log, outcome.peak, outcome.steps = script.log, script.peak, loop.steps
    return outcome


@cache
def bare(scenario: Scenario) -> Outcome:
    """What a host sees without a monitor."""
    return play(scenario)


def cancelled_everywhere(
    scenario: Scenario, wrap: Callable[[Any], Any], *, every: int = 1
) -> Iterator[tuple[int, Outcome, Outcome]]:
    """The same play, bare and wrapped, cancelled at each step in turn, or at one of so many.

    Yields:
        The step, and both outcomes.
    """
    for step in range(1 + crc32(scenario.name.encode()) % every, bare(scenario).steps + 1, every):
        yield step, play(scenario, cancel_at=step), play(scenario, wrap, cancel_at=step)


_RANDOM = re.compile(
    r"0x[0-9a-f]{6,}|Task-\d+|[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)?"
)


def canonical(text: str) -> str:
    """A text with ids, addresses and times replaced by numbers in order of appearance."""
    names: dict[str, str] = {}
    return _RANDOM.sub(lambda found: names.setdefault(found[0], f"#{len(names)}"), text)


def _chain(error: BaseException | None) -> Iterator[tuple[str, str]]:
    while error is not None:
        yield type(error).__name__, canonical(str(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
