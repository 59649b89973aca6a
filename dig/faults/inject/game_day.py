"""Faults around a team of async callables: for a game day with a user's team."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial, wraps
from typing import Any

from dig.adapters.plain.callables import CallablePlace, Function, TeamCallables, replace_all
from dig.detectors.thresholds import MOST_SECONDS
from dig.errors import SettingsError

from .fault import Fault
from .faulty_agent import ActiveFault, FaultContext
from .injector import Act, AgentCall, Occasion
from .payload_changes import UNKNOWN

_Make = Callable[[AgentCall], Awaitable[Any]]
_Hook = Callable[[AgentCall, Occasion], Awaitable[Any]]


class GameDay:
    """Faults around a team, until `end`; also a context manager.

    Attributes:
        acts: The acts of the faults so far, each with its time (`ts`).
    """

    def __init__(
        self, team: Any, faults: Sequence[Fault], *, seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """Put faults around a team of async callables, before or after `dig.wrap`.

        Put around the team before `dig.wrap`, faults belong to the agents, and the monitor sees
        their consequences; put around it afterwards, they stand between agents and monitor.

        Args:
            team: A dict or list of async callables or of objects with async methods, or one such
                object, as for `dig.wrap`; it is changed in place. The nodes of a LangGraph graph
                are such a dict, before they are added to it.
            faults: The faults; their windows are in seconds since now.
            seed: The seed of the faults' random numbers.
            clock: Seconds, from any beginning.

        Raises:
            SettingsError: A target is not in the team, or a kind cannot be put around callables.
        """
        self.acts: list[Act] = []
        self._clock, self._start = clock, clock()
        run = FaultContext(seed, UNKNOWN, 1.0, self._add_act)
        self._faults = [ActiveFault(i, fault, run) for i, fault in enumerate(faults)]
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
        """Remove the faults; the team is as before."""
        self._restore()

    @property
    def now(self) -> float:
        """Seconds since the faults were put around the team."""
        return self._clock() - self._start

    def _add_act(self, act: Act) -> None:
        act.ts = self.now
        self.acts.append(act)

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
        """Wrap the callable at a place in faults."""

        @wraps(place.function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            caller = self._calling.get()
            agents = tuple(
                agent
                for agent, method in self._places
                if method == place.method and agent not in (place.agent, caller)
            )
            make = self._layers(caller, self._answer, is_outgoing=True)
            method = place.method
            return await make(
                AgentCall(place.agent, caller, args, kwargs, method, agents, make=make)
            )

        return call

    async def _answer(self, call: AgentCall) -> Any:
        # A fault of the caller may have named another agent, so the faults are looked up here.
        return await self._layers(call.agent, self._run_agent, is_outgoing=False)(call)

    def _layers(self, target: str | None, make: _Make, *, is_outgoing: bool) -> _Make:
        """Wrap the making of a call in the active faults of an agent; the last is the innermost."""
        for active in reversed(self._faults):
            if active.fault.target == target and active.fault.is_on(self.now):
                injector = active.injector
                hook = injector.outgoing_call if is_outgoing else injector.incoming_call
                make = partial(self._act, active, hook, make)
        return make

    async def _act(self, active: ActiveFault, hook: _Hook, make: _Make, call: AgentCall) -> Any:
        target, end_s = active.fault.target, active.fault.end_s
        # A call has no activation; its number among the target's calls keys the random numbers.
        self._turns[target] += 1
        occasion = active.occasion(self._turns[target], self.now)
        remaining_s = MOST_SECONDS if end_s is None else end_s - self.now
        return await hook(replace(call, remaining_s=remaining_s, make=make), occasion)

    async def _run_agent(self, call: AgentCall) -> Any:
        # A context variable: concurrent calls of one agent each know their caller.
        token = self._calling.set(call.agent)
        try:
            return await self._places[call.agent, call.method].function(*call.args, **call.kwargs)
        finally:
            self._calling.reset(token)


around = GameDay
"""Puts faults around a team, until `end` or the end of a `with`."""
