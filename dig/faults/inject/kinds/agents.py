"""Faults of the family `agents`: an agent by itself hangs, fails, leaves or decides badly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import anyio

from dig.detectors.thresholds import MOST_SECONDS
from dig.faults.inject.injector import (
    ONCE,
    AgentCall,
    Change,
    Go,
    Injector,
    Moment,
    OnTurn,
    Parameter,
    Parameters,
    is_work,
    solutions,
)
from dig.graph.records import SYSTEM
from dig.monitor.messages import Pending
from dig.runtime.agents import Decision, EventFate, Plan, View


class Stall(Injector):
    """An activation takes some seconds longer; the host may end it as it ends any slow one."""

    parameters: ClassVar[Parameters] = {
        "seconds": Parameter(
            "Seconds that each activation takes longer.", 600.0, null=0, most=MOST_SECONDS
        )
    }

    has_amount = True

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """The same decision, much later."""
        seconds = self.chosen["seconds"] * self.strength(moment)
        if not seconds or not self.happens(moment):
            return plan
        moment.tell(f"took {seconds:g} s longer", since_start=True)
        return Plan(plan.think_s + seconds, plan.decision)

    async def answers(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The target hangs before it works."""
        seconds = self.chosen["seconds"] * self.strength(moment)
        if seconds and self.happens(moment):
            moment.tell(f"hung for {seconds:g} s")
            await anyio.sleep(seconds)
        return await go(call)


class Crash(Injector):
    """An activation ends with an error; its inputs stay with the agent, and the host retries."""

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """An error instead of the decision."""
        if not self.happens(moment):
            return plan
        moment.tell("failed instead of deciding")
        return Plan(plan.think_s, "the agent's answer could not be read")

    async def answers_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The target raises an error."""
        moment.tell("raised an error")
        raise RuntimeError(f"{call.agent} has failed")


class LeaveTeam(Injector):
    """The agent leaves when the window begins, and joins when it ends, with an empty buffer."""

    def script(
        self, moment: Moment, start_s: float, end_s: float | None
    ) -> Sequence[tuple[float, Change]]:
        """To leave and, if the window ends, to join."""
        if not self.happens(moment):
            return ()
        return ((start_s, "leave"),) if end_s is None else ((start_s, "leave"), (end_s, "join"))

    async def answers_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The call fails, since the target is not there."""
        moment.tell("was not there any more")
        raise LookupError(f"{call.agent} has left the team")


class Slow(Injector):
    """The agent takes several times as long to decide the same."""

    parameters: ClassVar[Parameters] = {
        "factor": Parameter(
            "How many times as long each activation takes.", 20.0, null=1, least=1, most=1_000_000
        )
    }

    has_amount = True

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """The same decision, later."""
        factor = self._factor(moment)
        if factor == 1 or not self.happens(moment):
            return plan
        moment.tell(f"took {factor:g} times as long", since_start=True)
        return Plan(plan.think_s * factor, plan.decision)

    async def answers(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The same answer, later."""
        factor, began = self._factor(moment), anyio.current_time()
        answer = await go(call)
        if factor > 1 and self.happens(moment):
            moment.tell(f"took {factor:g} times as long")
            await anyio.sleep((factor - 1) * (anyio.current_time() - began))
        return answer

    def _factor(self, moment: Moment) -> float:
        factor: float = self.chosen["factor"]
        return 1 + (factor - 1) * self.strength(moment)


class Silent(OnTurn):
    """The agent consumes all of its inputs, and generates nothing."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """To consume, and no more."""
        moment.tell("consumed everything and generated nothing")
        return Decision.respond(view)

    async def answers_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The target answers nothing, without having worked."""
        moment.tell("answered nothing")
        return None


class Hoard(OnTurn):
    """The agent delays all of its inputs, always."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """To wait."""
        moment.tell("waited, and kept everything")
        return Decision.wait()

    async def answers_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The target waits until the fault's window ends, and answers then."""
        moment.tell("waited, and did not answer")
        await anyio.sleep(call.remaining_s)
        return await go(call)


class PassOn(OnTurn):
    """The agent reroutes each input to another agent, drawn at random, and generates nothing."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """To reroute what is work; the rest stays."""
        work = [event for event in view.events if is_work(event)]
        if not work or not view.others:
            return decision
        moment.tell("passed all work on")
        to = [moment.choice(view.others, "to", i) for i in range(len(work))]
        return Decision(
            fates=[
                EventFate(event=event.id, fate="reroute", to=[name])
                for event, name in zip(work, to, strict=True)
            ]
        )

    async def answers_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """Another agent answers, if there is one."""
        if not call.others:
            return await go(call)
        to = moment.choice(call.others, "to")
        moment.tell(f"had {to} answer")
        return await go(replace(call, agent=to))


class SubmitEarly(OnTurn):
    """The agent submits the solutions that it has, put together, although parts are missing."""

    parameters: ClassVar[Parameters] = {"at_most": ONCE}

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """To submit, as soon as there is a solution."""
        found = solutions(view, decision)
        if not found or any(output.final for output in decision.outputs):
            return decision
        moment.tell("submitted what it had")
        return Decision.submit(view, moment.payloads.joined(found, view.agent))


class NeverSubmit(OnTurn):
    """The agent consumes what the answer is made of, and does not submit the answer."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The same decision without the answer."""
        if not any(output.final for output in decision.outputs):
            return decision
        moment.tell("did not submit the answer that it had")
        return decision.model_copy(update={"outputs": []})

    async def answers(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """A caller from outside the team gets no answer."""
        answer = await go(call)
        if call.caller is not None or not self.happens(moment):
            return answer
        moment.tell("did not give the answer that it had")
        return None


class DiscardNeeded(Injector):
    """The agent discards work without seeing it; it sees it only if there is nothing else."""

    parameters: ClassVar[Parameters] = {"at_most": ONCE}

    _thrown: list[str]  # in this activation: `seen` comes before `decided`

    def seen(self, view: View, moment: Moment) -> View:
        """The view without the events that will be discarded."""
        self._thrown = []
        for i, event in enumerate(view.events):
            if is_work(event) and self.happens(moment, "event", i):
                self._thrown.append(event.id)
                moment.tell("threw work away")
        left = tuple(event for event in view.events if event.id not in self._thrown)
        return replace(view, events=left) if left else view

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """The decision about the rest, and to discard."""
        if not self._thrown or isinstance(plan.decision, str):
            return plan
        thrown = [EventFate(event=event, fate="discard") for event in self._thrown]
        if len(thrown) == len(view.events):
            return Plan(plan.think_s, Decision(fates=thrown))
        fates = [fate for fate in plan.decision.fates if fate.event not in self._thrown]
        decision = plan.decision.model_copy(update={"fates": fates + thrown})
        return Plan(plan.think_s, decision)

    async def answers_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The target ignores the call."""
        moment.tell("threw a call away")
        return None


class IgnoreNotes(Injector):
    """The agent sees neither notes nor system events, which only runs with healing have."""

    _left: tuple[Pending, ...] | None  # in this activation: `seen` comes before `decided`

    def seen(self, view: View, moment: Moment) -> View:
        """The view without notes and system events."""
        speaks = any(event.notes or event.sender == SYSTEM for event in view.events)
        self._left = None
        if not speaks or not self.happens(moment):
            return view
        moment.tell("did not read what the system said")
        self._left = tuple(
            replace(e, notes=(), about=()) for e in view.events if e.sender != SYSTEM
        )
        return replace(view, events=self._left) if self._left else view

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """An empty decision, if all inputs are system events."""
        if self._left != () or isinstance(plan.decision, str):
            return plan
        return Plan(plan.think_s, Decision())
