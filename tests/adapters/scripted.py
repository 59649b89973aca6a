"""Teams whose agents do what the message to them says, and tell a log of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import anyio
from anyio.abc import TaskGroup
from hypothesis import strategies as st

NAMES = ("ann", "bob", "cyd", "dan")

mood: ContextVar[int] = ContextVar("mood", default=0)

Step = tuple[Any, ...]
Script = tuple[Step, ...]


class Trouble(Exception):
    """What a script raises."""


class Team:
    """Agents by name, in a dict that they look each other up in.

    Attributes:
        agents: The dict; wrap it.
        log: What happened, in order: when, who, what.
        background: Where calls are made that nobody waits for.
    """

    def __init__(
        self,
        nap: Callable[[float], Awaitable[Any]] = anyio.sleep,
        now: Callable[[], float] = anyio.current_time,
    ) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.agents: dict[str, Any] = {name: self._agent(name) for name in NAMES}
        self.background: TaskGroup | None = None
        self._nap = nap
        self._now = now

    def _agent(self, name: str) -> Callable[[Script], Awaitable[Any]]:
        async def agent(script: Script) -> Any:
            self._tell(name, "in", script)
            given: list[Any] = []
            try:
                for step in script:
                    given.append(await self._do(name, step))
            except BaseException as error:
                self._tell(name, "raises", type(error).__name__)
                raise
            self._tell(name, "out", given)
            return given

        return agent

    def _tell(self, *what: Any) -> None:
        self.log.append((round(self._now(), 6), mood.get(), *what))

    async def _do(self, name: str, step: Step) -> Any:
        kind, *rest = step
        if kind == "nap":
            await self._nap(rest[0])
        elif kind == "call":
            return await self.agents[rest[0]](rest[1])
        elif kind == "both":
            return await self._both(rest)
        elif kind == "try":
            try:
                return await self._do(name, rest[0])
            except Trouble as trouble:
                return str(trouble)
        elif kind == "leave" and self.background is not None:
            self.background.start_soon(self._later, *rest)
        elif kind == "mood":
            mood.set(rest[0])
        elif kind == "fail":
            raise Trouble(f"{name} fails")
        return kind

    async def _later(self, agent: str, script: Script) -> None:
        """A call that nobody waits for."""
        try:
            self._tell("somebody", "learns", await self.agents[agent](script))
        except Trouble as trouble:
            self._tell("somebody", "learns", str(trouble))

    async def _both(self, calls: list[tuple[str, Script]]) -> list[Any]:
        results: list[Any] = [None] * len(calls)

        async def one(place: int, agent: str, script: Script) -> None:
            results[place] = await self.agents[agent](script)

        async with anyio.create_task_group() as tasks:
            for place, (agent, script) in enumerate(calls):
                tasks.start_soon(one, place, agent, script)
        return results


def quiet(scripts: st.SearchStrategy[Script]) -> st.SearchStrategy[Script]:
    """Scripts that end without a group of exceptions, which would end the background."""
    return scripts.filter(lambda script: "both" not in str(script))


NAPS = st.sampled_from([0.0, 0.1, 0.25]).map(lambda s: ("nap", s))
MOODS = st.integers(1, 9).map(lambda n: ("mood", n))
FAILS = st.just(("fail",))


def _further(inner: st.SearchStrategy[Step], concurrent: bool) -> st.SearchStrategy[Step]:
    scripts = st.lists(inner, min_size=0, max_size=3).map(tuple)
    calls = st.tuples(st.sampled_from(NAMES), scripts)
    steps = [calls.map(lambda c: ("call", *c)), inner.map(lambda s: ("try", s))]
    if concurrent:
        steps.append(st.lists(calls, min_size=2, max_size=3).map(lambda c: ("both", *c)))
        steps.append(st.tuples(st.sampled_from(NAMES), quiet(scripts)).map(lambda c: ("leave", *c)))
    return st.one_of(steps)


def scripts(*, concurrent: bool = True) -> st.SearchStrategy[Script]:
    """What an agent is told to do: naps, calls, several calls at once, exceptions."""
    steps = st.recursive(
        st.one_of(NAPS, NAPS, MOODS, FAILS), lambda inner: _further(inner, concurrent),
        max_leaves=12,
    )  # fmt: skip
    return st.lists(steps, min_size=1, max_size=4).map(tuple)
