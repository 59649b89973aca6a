"""A team with faults around it, for the simulator and for the bus.

Only the targets are wrapped; everybody else, and every detector, is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from dig.errors import DecisionError, SettingsError
from dig.messages import Effect
from dig.monitor import Monitor
from dig.plain import names
from dig.runtime.agents import (
    Agent,
    AgentFunction,
    Decision,
    Plan,
    Policy,
    View,
    as_agent,
    as_decision,
)
from dig.runtime.bus import Bus
from dig.runtime.draws import Draws
from dig.runtime.simulation import Happening

from .fault import Fault
from .injector import Change, Injector, Moment, Touch
from .payloads import UNKNOWN, Payloads

Member = Agent | AgentFunction | Policy


class Injected:
    """A team with faults around it, for one run.

    Attributes:
        team: The agents by name, as they were or with faults around them.
        touches: What the faults have done so far.
    """

    def __init__(
        self, team: Mapping[str, Member], faults: Sequence[Fault], seed: int,
        payloads: Payloads = UNKNOWN, speed: float = 1.0,
    ) -> None:  # fmt: skip
        """Put them round it.

        Args:
            team: The agents by name; it is not changed.
            faults: One, or several as a hybrid; of two on one agent the first acts first.
            seed: Of the faults' random numbers.
            payloads: What the payloads of the task mean.
            speed: How many times faster than real time the clock of the run goes, on the bus.

        Raises:
            SettingsError: A target is not in the team.
        """
        self.touches: list[Touch] = []
        self.speed = speed
        self._seed, self._payloads = seed, payloads
        self._acting = [
            Acting(i, fault, fault.row.injector(fault.parameters)) for i, fault in enumerate(faults)
        ]
        for fault in faults:
            if fault.target not in team:
                raise SettingsError(
                    f"the target of {fault.kind}, {fault.target!r}, is not in the team of "
                    f"{names([*team])}"
                )
        self.team: dict[str, Any] = {
            name: self._around(agent, [one for one in self._acting if one.fault.target == name])
            for name, agent in team.items()
        }

    def script(self) -> list[tuple[float, str, Change, Callable[[], None]]]:
        """What happens from outside: when, to whom, what, and whom to tell that it did."""
        return [
            (at_s, acting.fault.target, change, told)
            for acting in self._acting
            for at_s, change, told in self._comings_and_goings(acting)
        ]

    def happenings(self) -> list[Happening]:
        """The script for the simulator."""
        return [(at_s, _change(agent, change, told)) for at_s, agent, change, told in self.script()]

    async def keep(self, bus: Bus) -> None:
        """Carry the script out on an open bus."""
        began = anyio.current_time()
        for at_s, agent, change, told in sorted(self.script(), key=lambda row: row[0]):
            await anyio.sleep_until(began + at_s / self.speed)
            monitor = bus.monitor
            if monitor is None or monitor.is_over:
                return
            if (agent in monitor.graph.agents) == (change == "join"):
                continue
            if change == "leave":
                bus.leave(agent)
            else:
                bus.join(agent, self.team[agent])
            told()

    def moment(self, acting: Acting, agent: str, turn: int) -> Moment:
        """One activation, for one fault."""

        def told(what: str, since_start: bool, output: Any) -> None:
            acting.injector.acted += 1
            self.touches.append(Touch(acting.number, agent, turn, what, since_start, output))

        draws = Draws(self._seed, agent, turn)
        return Moment(acting.number, acting.fault.kind, draws, self._payloads, told)

    def _around(self, agent: Member, acting: list[Acting]) -> Member:
        if not acting:
            return agent
        return (
            FaultyPolicy(agent, self, acting)
            if hasattr(agent, "plan")
            else Faulty(agent, self, acting)
        )

    def _comings_and_goings(
        self, acting: Acting
    ) -> Iterable[tuple[float, Change, Callable[[], None]]]:
        fault = acting.fault
        moment = self.moment(acting, fault.target, 0)
        for at_s, change in acting.injector.script(moment, fault.start_s, fault.end_s):
            tell = (lambda: moment.tell("left the team")) if change == "leave" else lambda: None
            yield at_s, change, tell


@dataclass(frozen=True)
class Acting:
    """A fault at work in one run."""

    number: int
    fault: Fault
    injector: Injector


class Faulty:
    """An agent with faults around it; whatever else it has is passed through."""

    def __init__(self, agent: Any, injected: Injected, acting: Sequence[Acting]) -> None:
        """Put them round it."""
        self._agent, self._injected, self._acting = agent, injected, acting

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    async def act(self, view: View) -> Decision:
        """Decide as the agent does, or as the faults have it.

        Raises:
            DecisionError: A fault has it fail.
        """
        turn = _Turn(self._injected, self._acting, view)
        began = anyio.current_time()
        decision = as_decision(await as_agent(self._agent).act(turn.view))
        thought_s = (anyio.current_time() - began) * self._injected.speed
        plan = turn.decided(Plan(thought_s, decision))
        await anyio.sleep(max(0.0, plan.think_s - thought_s) / self._injected.speed)
        if isinstance(plan.decision, str):
            raise DecisionError(plan.decision)
        return plan.decision


class FaultyPolicy(Faulty):
    """The same, for an agent that can plan: in virtual time, and on the bus by `Thinking`."""

    def plan(self, view: View) -> Plan:
        """Decide as the agent does, or as the faults have it."""
        turn = _Turn(self._injected, self._acting, view)
        return turn.decided(self._agent.plan(turn.view))


class _Turn:
    """One activation of a target: what it is shown, and what it decides."""

    def __init__(self, injected: Injected, acting: Sequence[Acting], view: View) -> None:
        self._injected, self._acting, self._given = injected, acting, view
        self._moments = {
            one.number: injected.moment(one, view.agent, view.turn)
            for one in acting
            if one.fault.is_on(view.time_s)
        }
        self.view = view
        for one, moment in self._on():
            self.view = one.injector.seen(self.view, moment)

    def _on(self) -> Iterable[tuple[Acting, Moment]]:
        return (
            (one, self._moments[one.number]) for one in self._acting if one.number in self._moments
        )

    def decided(self, plan: Plan) -> Plan:
        before = len(self._injected.touches)
        if isinstance(plan.decision, Decision):
            for one in self._acting:
                one.injector.watch(self._given, plan.decision)
        for one, moment in self._on():
            plan = one.injector.decided(self._given, plan, moment)
        outputs = [] if isinstance(plan.decision, str) else plan.decision.outputs
        for touch in self._injected.touches[before:]:
            touch.place = next(
                (i for i, output in enumerate(outputs) if output is touch.output), None
            )
        return plan


def _change(
    agent: str, change: Change, told: Callable[[], None]
) -> Callable[[Monitor], list[Effect]]:
    def happening(monitor: Monitor) -> list[Effect]:
        if monitor.is_over or (agent in monitor.graph.agents) == (change == "join"):
            return []
        effects = monitor.leave(agent) if change == "leave" else monitor.join(agent)
        told()
        return effects

    return happening
