"""An agent with faults around it: they change its view and its decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from dig.errors import DecisionError
from dig.runtime.agents import Decision, NewEvent, Plan, Thinking, View, as_agent, as_decision
from dig.runtime.keyed_random import KeyedRandom

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


class Acting:
    """One fault at work in one run."""

    def __init__(self, number: int, fault: Fault, run: FaultContext) -> None:
        """Begin; `number` is its place in the list of faults."""
        self.number = number
        self.fault = fault
        self.injector: Injector = fault.row.injector(fault.parameters)
        self._run = run

    def moment(self, turn: int, time_s: float) -> Moment:
        """The moment of an activation of the target.

        Args:
            turn: The number of the activation, from 1.
            time_s: When it starts, in seconds since the run began.
        """

        def told(touch: Touch) -> None:
            self.injector.acted += 1
            self._run.told(touch)

        purpose = f"fault {self.number} {self.fault.kind}"
        draws = KeyedRandom(self._run.key, self.fault.target, turn)
        act = Touch(self.number, self.fault.target, turn)
        since_s = max(0.0, time_s - self.fault.start_s)
        return Moment(purpose, draws, self._run.payloads, act, told, since_s)


class FaultyAgent:
    """An agent with faults around it; all other attributes are the agent's own."""

    def __init__(self, agent: Any, acting: Sequence[Acting], run: FaultContext) -> None:
        """Put faults around an agent; of several the first acts first."""
        self._agent, self._acting, self._run = agent, acting, run

    def __getattr__(self, name: str) -> Any:
        if name == "_agent":  # a copy that is only being made
            raise AttributeError(name)
        return getattr(self._agent, name)

    async def act(self, view: View) -> Decision:
        """Decide as the agent does, or as the faults have it.

        Raises:
            DecisionError: A fault makes it fail.
        """
        turn = _Turn(self._acting, view)
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
        turn = _Turn(self._acting, view)
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

    def __init__(self, acting: Sequence[Acting], view: View) -> None:
        self._acting, self._given, self.view = acting, view, view
        self._moments = {
            one.number: one.moment(view.turn, view.time_s)
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
