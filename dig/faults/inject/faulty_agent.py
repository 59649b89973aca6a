"""An agent with faults around the view and the decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from dig.runtime.keyed_random import KeyedRandom, repeat_key

from .fault import Fault
from .injector import Act, Injector, Occasion
from .payload_changes import Payloads


@dataclass(frozen=True)
class FaultContext:
    """The common values of all faults of a run.

    Attributes:
        key: The key of the random numbers.
        payloads: The transforms of the task's payloads.
        speed: The speed of the bus's clock, as a multiple of real time.
        on_act: Called with each act.
    """

    key: int | str
    payloads: Payloads
    speed: float
    on_act: Callable[[Act], None]

    def __deepcopy__(self, memo: object) -> FaultContext:
        # An agent copied for the seat of another acts in the same run.
        return self


class ActiveFault:
    """A fault of a run, with the injector.

    Attributes:
        number: The fault's place in the list of faults.
        fault: The fault.
        injector: Carries the fault out.
    """

    def __init__(self, number: int, fault: Fault, run: FaultContext) -> None:
        self.number = number
        self.fault = fault
        self.injector: Injector = fault.row.injector(fault.parameters)
        self._run = run

    def occasion(
        self, turn: int, time_s: float, agent: str | None = None, repeats: Sequence[int] = ()
    ) -> Occasion:
        """The occasion for the fault in an activation.

        Args:
            turn: The number of the activation among those of the agent.
            time_s: When the activation starts, in seconds since the run began.
            agent: The agent in whose place the target decides; ``None``: the target.
            repeats: The repeats whose random numbers are drawn.
        """
        agent = agent or self.fault.target

        def count_act(act: Act) -> None:
            self.injector.act_count += 1
            self._run.on_act(act)

        purpose = f"fault {self.number} {self.fault.kind}"
        draws = KeyedRandom(repeat_key(self._run.key, repeats), agent, turn)
        template = Act(self.number, agent, turn)
        since_s = max(0.0, time_s - self.fault.start_s)
        return Occasion(purpose, draws, self._run.payloads, template, count_act, since_s)


class FaultyAgent:
    """An agent with faults around; all other attributes are the agent's own."""

    def __init__(
        self, agent: Any, active_faults: Sequence[ActiveFault], run: FaultContext,
        repeats: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        """Put faults around an agent.

        Args:
            agent: The agent.
            active_faults: The faults; of several the first acts first.
            run: The values that all faults of the run share.
            repeats: The repeats whose random numbers the faults draw.
        """
        self._agent, self._active_faults = agent, active_faults
        self._run, self._repeats = run, repeats

    def __getattr__(self, name: str) -> Any:
        if name == "_agent":  # `copy` asks before the copy has attributes
            raise AttributeError(name)
        return getattr(self._agent, name)

    def restore(self, past: Sequence[PastActivation]) -> None:
        """Repeat the past acts of the faults, to restore counters and memories.

        Raises:
            ReplayError: The agent's own past decisions cannot be computed again.
        """
        agent = self._agent
        is_open = hasattr(agent, "plan") and not isinstance(agent, Immediate)
        if not is_open or (keeps_state(agent) and not getattr(agent, "plans_alike", False)):
            raise ReplayError(
                f"agent {past[0].view.agent!r} ({type(agent).__name__}) has a fault around it, and "
                "what the fault did before that record cannot be told: the agent keeps a state or "
                "has no `plan`; fork the run at a record before its first activation"
            )
        for activation in past:
            faulty = self
            for number in activation.repeats:
                faulty = faulty.reseeded(number)
            with suppress(Exception):  # an activation that failed in the run fails here as well
                turn = faulty._turn(replace(activation.view, usage={}))
                turn.change_plan(faulty._agent.plan(turn.view))

    def reseeded(self, repeat: int) -> Self:
        """The same agent and faults, with the random numbers of a repeat."""
        agent = self._agent
        if hasattr(agent, "reseeded"):
            agent = agent.reseeded(repeat)
        return type(self)(agent, self._active_faults, self._run, (*self._repeats, repeat))

    def _turn(self, view: View) -> _FaultyTurn:
        return _FaultyTurn(self._active_faults, view, self._repeats)

    async def act(self, view: View) -> Decision:
        """Decide as the agent does, or as the faults make it decide.

        Raises:
            DecisionError: A fault makes the agent fail.
        """
        turn = self._turn(view)
        started, speed = anyio.current_time(), self._run.speed
        # The think time is measured, since faults stretch it.
        decision = as_decision(await as_agent(self._agent).act(turn.view))
        think_s = (anyio.current_time() - started) * speed
        plan = turn.change_plan(Plan(think_s, decision))
        await anyio.sleep(max(0.0, plan.think_s - think_s) / speed)
        if isinstance(plan.decision, str):
            raise DecisionError(plan.decision)
        return plan.decision


class FaultyPolicy(FaultyAgent):
    """A faulty agent with a `plan`, for virtual time."""

    def plan(self, view: View) -> Plan:
        """Plan as the agent does, or as the faults make it plan."""
        turn = self._turn(view)
        return turn.change_plan(self._agent.plan(turn.view))

    async def act(self, view: View) -> Decision:
        """Decide, and take the think time of the plan.

        Raises:
            DecisionError: The agent fails.
        """
        return await Thinking(self, self._run.speed).act(view)


class _FaultyTurn:
    """An activation of a target.

    Attributes:
        view: The agent's view, as the faults change it.
    """

    def __init__(
        self, active_faults: Sequence[ActiveFault], view: View, repeats: Sequence[int]
    ) -> None:
        self._faults, self._original_view, self.view = active_faults, view, view
        # Only the faults that are on at the start of the activation; they act first to last.
        self._occasions: list[tuple[Injector, Occasion]] = [
            (active.injector, active.occasion(view.turn, view.time_s, view.agent, repeats))
            for active in active_faults
            if active.fault.is_on(view.time_s)
        ]
        for injector, occasion in self._occasions:
            self.view = injector.change_view(self.view, occasion)

    def change_plan(self, plan: Plan) -> Plan:
        """Have all faults change the plan, in order."""
        count = len(_outputs(plan))
        if isinstance(plan.decision, Decision):
            for active in self._faults:
                active.injector.observe(self._original_view, plan.decision)
        for injector, occasion in self._occasions:
            plan = injector.change_plan(self._original_view, plan, occasion)
        outputs = _outputs(plan)
        for _, occasion in self._occasions:
            occasion.place_acts(outputs, len(outputs) == count)
        return plan


def _outputs(plan: Plan) -> Sequence[NewEvent]:
    return () if isinstance(plan.decision, str) else plan.decision.outputs
