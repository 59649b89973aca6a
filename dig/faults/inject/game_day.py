"""Faults around a team of async callables: for a game day with a team of one's own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

from dig.adapters.plain.callables import CallablePlace, Function, TeamCallables, replace_all
from dig.detectors.thresholds import MOST_SECONDS
from dig.errors import SettingsError

from .fault import Fault
from .faulty_agent import Acting, FaultContext
from .injector import AgentCall, Go, Moment, Touch
from .payloads import UNKNOWN

_Hook = Callable[[AgentCall, Go, Moment], Awaitable[Any]]


@dataclass(frozen=True)
class Act:
    """One act of a fault.

    Attributes:
        fault: The fault's place in the list of faults.
        ts: When, in seconds since the faults were put round the team.
        agent: The fault's target.
        what: A description of the act.
    """

    fault: int
    ts: float
    agent: str
    what: str


class GameDay:
    """Faults around a team, until `end`; also to be used in a `with`.

    Attributes:
        acts: The acts of the faults so far.
    """

    def __init__(
        self, team: Any, faults: Sequence[Fault], *, seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """Put faults round a team of async callables, before or after it is wrapped.

        Put round it before `dig.wrap`, faults belong to the agents, and the monitor sees their
        consequences; put round it afterwards, they stand between the agents and the monitor.

        Args:
            team: A dict or list of async callables or of objects with async methods, or one such
                object, as for `dig.wrap`; it is changed in place. The nodes of a LangGraph graph
                are such a dict, before they are added to it.
            faults: The faults; their windows are in seconds since now.
            seed: The seed of the faults' random numbers.
            clock: Tells the time in seconds.

        Raises:
            SettingsError: A target is not in the team, or a kind cannot be put around callables.
        """
        self.acts: list[Act] = []
        self._clock, self._began = clock, clock()
        run = FaultContext(seed, UNKNOWN, 1.0, self._tell)
        self._faults = [Acting(i, fault, run) for i, fault in enumerate(faults)]
        self._turns: Counter[str] = Counter()
        self._calling: ContextVar[str | None] = ContextVar("calling", default=None)
        places = [place for place in TeamCallables.of(team).places if place.is_awaited]
        self._places = {(place.agent, place.method): place for place in places}
        self._check(faults)
        self._restore = replace_all(places, self._around)

    def __enter__(self) -> GameDay:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """Take the faults away; the team is as it was before."""
        self._restore()

    @property
    def now(self) -> float:
        """Seconds since the faults were put round the team."""
        return self._clock() - self._began

    def _tell(self, touch: Touch) -> None:
        self.acts.append(Act(touch.fault, self.now, touch.agent, touch.what))

    def _check(self, faults: Sequence[Fault]) -> None:
        agents = list(dict.fromkeys(agent for agent, _ in self._places))
        if not agents:
            raise SettingsError("there is no async callable to put faults round")
        for fault in faults:
            if fault.row.not_around:
                raise SettingsError(
                    f"{fault.kind} cannot be put round async callables: {fault.row.not_around}"
                )
            fault.check_target(agents)

    # --- one call ---

    def _around(self, place: CallablePlace) -> Function:
        """A callable in place of the one at a place, with faults around it."""

        @wraps(place.function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            caller = self._calling.get()
            involved = {place.agent, caller}
            others = (name for name, way in self._places if way == place.method)
            free = tuple(name for name in others if name not in involved)
            return await self._ask(AgentCall(place.agent, caller, args, kwargs, place.method, free))

        return call

    async def _ask(self, call: AgentCall) -> Any:
        """Have a call made, as the faults of its caller have it."""
        go: Go = self._answer
        for acting in self._on(call.caller):
            go = partial(self._layer, acting, acting.injector.asks, go)
        return await go(call)

    async def _answer(self, call: AgentCall) -> Any:
        """Have a call answered, as the faults of the called agent have it."""
        go: Go = self._work
        for acting in self._on(call.agent):
            go = partial(self._layer, acting, acting.injector.answers, go)
        return await go(call)

    async def _layer(self, acting: Acting, hook: _Hook, go: Go, call: AgentCall) -> Any:
        target, end_s = acting.fault.target, acting.fault.end_s
        self._turns[target] += 1
        moment = acting.moment(self._turns[target], self.now)
        left_s = MOST_SECONDS if end_s is None else end_s - self.now
        return await hook(replace(call, remaining_s=left_s), go, moment)

    async def _work(self, call: AgentCall) -> Any:
        """Have an agent itself work."""
        before = self._calling.set(call.agent)
        try:
            return await self._places[call.agent, call.method].function(*call.args, **call.kwargs)
        finally:
            self._calling.reset(before)

    def _on(self, target: str | None) -> list[Acting]:
        """The faults of an agent that are on, the last one first: it is the innermost."""
        return [
            one for one in reversed(self._faults)
            if one.fault.target == target and one.fault.is_on(self.now)
        ]  # fmt: skip


around = GameDay
"""Puts faults round a team; `end` takes them away, and so does the end of a `with`."""
