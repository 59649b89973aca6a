"""An agent with faults around it: they change its view and its decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import anyio

from dig.errors import DecisionError, ReplayError
from dig.runtime.agents import (
    Decision,
    Immediate,
    NewEvent,
    Plan,
    Thinking,
    View,
    as_agent,
    as_decision,
)
from dig.runtime.checkpoint import PastActivation, keeps_state
from dig.runtime.keyed_random import KeyedRandom, repeated

from .fault import Fault
from .injector import Injector, Moment, Touch
from .payloads import Payloads


@dataclass(frozen=True)
class FaultContext:
    """The values that all faults of one run share.

    Attributes:
        key: The key of their random numbers.
        payloads: The transforms of the task's payloads.
        speed: The speed of the bus's clock, as a multiple of real time.
        told: Takes each of their acts.
    """

    key: int | str
    payloads: Payloads
    speed: float
    told: Callable[[Touch], None]

    def __deepcopy__(self, memo: object) -> FaultContext:
        """The same one: a copy of an agent, for the seat of another, acts in the same run."""
        return self


class Acting:
    """One fault at work in one run."""

    def __init__(self, number: int, fault: Fault, run: FaultContext) -> None:
        """Begin; `number` is its place in the list of faults."""
        self.number = number
        self.fault = fault
        self.injector: Injector = fault.row.injector(fault.parameters)
        self._run = run

    def moment(
        self, turn: int, time_s: float, agent: str | None = None, repeats: Sequence[int] = ()
    ) -> Moment:
        """The moment of an activation.

        Args:
            turn: The number of the activation among those of the agent.
            time_s: When it starts, in seconds since the run began.
            agent: The agent in whose place the target decides; ``None``: its own.
            repeats: The repeats whose random numbers are drawn.
        """
        agent = agent or self.fault.target

        def told(touch: Touch) -> None:
            self.injector.acted += 1
            self._run.told(touch)

        purpose = f"fault {self.number} {self.fault.kind}"
        draws = KeyedRandom(repeated(self._run.key, repeats), agent, turn)
        act = Touch(self.number, agent, turn)
        since_s = max(0.0, time_s - self.fault.start_s)
        return Moment(purpose, draws, self._run.payloads, act, told, since_s)


class FaultyAgent:
    """An agent with faults around it; all other attributes are the agent's own."""

    def __init__(
        self, agent: Any, acting: Sequence[Acting], run: FaultContext,
        repeats: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        """Put faults around an agent.

        Args:
            agent: The agent.
            acting: The faults; of several the first acts first.
            run: The values that all faults of the run share.
            repeats: The repeats whose random numbers the faults draw.
        """
        self._agent, self._acting, self._run, self._repeats = agent, acting, run, repeats

    def __getattr__(self, name: str) -> Any:
        if name == "_agent":  # a copy that is only being made
            raise AttributeError(name)
        return getattr(self._agent, name)

    def restore(self, past: Sequence[PastActivation]) -> None:
        """Have the faults act again as in these activations, so that they know what they did.

        Raises:
            ReplayError: The agent's own decision at that time cannot be told.
        """
        agent = self._agent
        is_open = hasattr(agent, "plan") and not isinstance(agent, Immediate)
        if not is_open or (keeps_state(agent) and not getattr(agent, "plans_alike", False)):
            raise ReplayError(
                f"agent {past[0].view.agent!r} ({type(agent).__name__}) has a fault around it, and "
                "what the fault did before that record cannot be told: the agent keeps a state or "
                "has no `plan`; fork the run at a record before its first activation"
            )
        for one in past:
            then = self
            for number in one.repeats:
                then = then.reseeded(number)
            with suppress(Exception):  # as it failed then
                turn = then._turn(replace(one.view, usage={}))
                turn.decided(then._agent.plan(turn.view))

    def reseeded(self, repeat: int) -> Self:
        """The same agent and faults, with the random numbers of a repeat."""
        agent = self._agent
        if hasattr(agent, "reseeded"):
            agent = agent.reseeded(repeat)
        return type(self)(agent, self._acting, self._run, (*self._repeats, repeat))

    def _turn(self, view: View) -> _Turn:
        return _Turn(self._acting, view, self._repeats)

    async def act(self, view: View) -> Decision:
        """Decide as the agent does, or as the faults have it.

        Raises:
            DecisionError: A fault makes it fail.
        """
        turn = self._turn(view)
        began, speed = anyio.current_time(), self._run.speed
        decision = as_decision(await as_agent(self._agent).act(turn.view))
        thought_s = (anyio.current_time() - began) * speed
        plan = turn.decided(Plan(thought_s, decision))
        await anyio.sleep(max(0.0, plan.think_s - thought_s) / speed)
        if isinstance(plan.decision, str):
            raise DecisionError(plan.decision)
        return plan.decision


class FaultyPolicy(FaultyAgent):
    """A faulty agent with a `plan`, for virtual time."""

    def plan(self, view: View) -> Plan:
        """Decide as the agent does, or as the faults have it."""
        turn = self._turn(view)
        return turn.decided(self._agent.plan(turn.view))

    async def act(self, view: View) -> Decision:
        """Decide, and take the time for it.

        Raises:
            DecisionError: The agent fails.
        """
        return await Thinking(self, self._run.speed).act(view)


class _Turn:
    """One activation of a target.

    Attributes:
        view: The view of the agent, as the faults change it.
    """

    def __init__(self, acting: Sequence[Acting], view: View, repeats: Sequence[int]) -> None:
        self._acting, self._given, self.view = acting, view, view
        self._moments = {
            one.number: one.moment(view.turn, view.time_s, view.agent, repeats)
            for one in acting
            if one.fault.is_on(view.time_s)
        }
        for injector, moment in self._on():
            self.view = injector.seen(self.view, moment)

    def _on(self) -> Iterator[tuple[Injector, Moment]]:
        """The faults that are on in this activation, in order."""
        for one in self._acting:
            if one.number in self._moments:
                yield one.injector, self._moments[one.number]

    def decided(self, plan: Plan) -> Plan:
        """The plan after all faults have changed it."""
        meant = _outputs(plan)
        if isinstance(plan.decision, Decision):
            for one in self._acting:
                one.injector.watch(self._given, plan.decision)
        for injector, moment in self._on():
            plan = injector.decided(self._given, plan, moment)
        outputs = _outputs(plan)
        for moment in self._moments.values():
            moment.settle(outputs, len(outputs) == len(meant))
        return plan


def _outputs(plan: Plan) -> Sequence[NewEvent]:
    return () if isinstance(plan.decision, str) else plan.decision.outputs
