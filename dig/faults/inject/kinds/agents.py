"""Faults of the family `agents`: an agent by itself hangs, fails, leaves or decides badly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import anyio

from dig._util.text import counted
from dig.detectors.thresholds import MOST_SECONDS
from dig.faults.inject.injector import (
    ONCE,
    AgentCall,
    Change,
    Injector,
    Occasion,
    OnTurn,
    Parameter,
    Parameters,
    is_work,
    solutions,
)
from dig.graph.records import SYSTEM
from dig.monitor.messages import Pending
from dig.runtime.agents import Decision, EventFate, Plan, View


def _work_text(view: View) -> str:
    """The amount of work in front of an agent."""
    return counted(sum(map(is_work, view.events)), "message")


class Stall(Injector):
    """An activation takes some seconds longer; the host may end such a slow activation."""

    parameters: ClassVar[Parameters] = {
        "seconds": Parameter(
            "Seconds that each activation takes longer.", 600.0, null=0, most=MOST_SECONDS
        )
    }

    has_amount = True

    def change_plan(self, view: View, plan: Plan, occasion: Occasion) -> Plan:
        """Delay the decision by many seconds."""
        seconds = self.values["seconds"] * self.strength(occasion)
        if not seconds or not self.should_act(occasion):
            return plan
        occasion.add_act(f"took {seconds:g} s longer", since_start=True)
        return Plan(plan.think_s + seconds, plan.decision)

    async def incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Hang before the answer."""
        seconds = self.values["seconds"] * self.strength(occasion)
        if seconds and self.should_act(occasion):
            occasion.add_act(f"hung for {seconds:g} s")
            await anyio.sleep(seconds)
        return await call.proceed()


class Crash(Injector):
    """An activation ends with an error; the inputs stay with the agent, and the host retries."""

    def change_plan(self, view: View, plan: Plan, occasion: Occasion) -> Plan:
        """Replace the decision by an error."""
        if not self.should_act(occasion):
            return plan
        occasion.add_act("failed instead of deciding")
        return Plan(plan.think_s, "the agent's answer could not be read")

    async def faulty_incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Raise an error."""
        occasion.add_act("raised an error")
        raise RuntimeError(f"{call.agent} has failed")


class LeaveTeam(Injector):
    """The agent leaves when the window begins and joins when the window ends, with no buffer."""

    def membership_changes(
        self, occasion: Occasion, start_s: float, end_s: float | None
    ) -> Sequence[tuple[float, Change]]:
        """Leave and, if the window ends, join."""
        if not self.should_act(occasion):
            return ()
        return ((start_s, "leave"),) if end_s is None else ((start_s, "leave"), (end_s, "join"))

    async def faulty_incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Fail the call: the target is absent."""
        occasion.add_act("was not there any more")
        raise LookupError(f"{call.agent} has left the team")


class Slow(Injector):
    """The agent takes several times as long to decide the same."""

    parameters: ClassVar[Parameters] = {
        "factor": Parameter(
            "How many times as long each activation takes.", 20.0, null=1, least=1, most=1_000_000
        )
    }

    has_amount = True

    def change_plan(self, view: View, plan: Plan, occasion: Occasion) -> Plan:
        """Delay the decision by a factor."""
        factor = self._factor(occasion)
        if factor == 1 or not self.should_act(occasion):
            return plan
        occasion.add_act(f"took {factor:g} times as long", since_start=True)
        return Plan(plan.think_s * factor, plan.decision)

    async def incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Delay the answer by a factor."""
        factor, start = self._factor(occasion), anyio.current_time()
        answer = await call.proceed()
        # After the call, since the time of the call is what is stretched.
        if factor > 1 and self.should_act(occasion):
            occasion.add_act(f"took {factor:g} times as long")
            await anyio.sleep((factor - 1) * (anyio.current_time() - start))
        return answer

    def _factor(self, occasion: Occasion) -> float:
        factor: float = self.values["factor"]
        return 1 + (factor - 1) * self.strength(occasion)


class Silent(OnTurn):
    """The agent consumes all inputs and generates nothing."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """Consume everything, and no more."""
        occasion.add_act(f"took {_work_text(view)} and sent nothing on")
        return Decision.respond(view)

    async def faulty_incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Answer ``None`` without any work."""
        occasion.add_act("answered nothing")
        return None


class Hoard(OnTurn):
    """The agent delays all inputs, always."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """Wait."""
        occasion.add_act(f"left {_work_text(view)} lying")
        return Decision.wait()

    async def faulty_incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Wait until the fault's window ends, then answer."""
        occasion.add_act("waited, and did not answer")
        await anyio.sleep(call.remaining_s)
        return await call.proceed()


class PassOn(OnTurn):
    """The agent reroutes each input to another agent, drawn at random, and generates nothing."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """Reroute all work; other events stay."""
        work = [event for event in view.events if is_work(event)]
        if not work or not view.others:
            return decision
        occasion.add_act(f"passed {counted(len(work), 'message')} on to other agents")
        to = [occasion.choice(view.others, "to", i) for i in range(len(work))]
        return Decision(
            fates=[
                EventFate(event=event.id, fate="reroute", to=[name])
                for event, name in zip(work, to, strict=True)
            ]
        )

    async def faulty_incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Have another agent answer, if there is another."""
        if not call.others:
            return await call.proceed()
        to = occasion.choice(call.others, "to")
        occasion.add_act(f"had {to} answer")
        return await replace(call, agent=to).proceed()


class SubmitEarly(OnTurn):
    """The agent merges and submits the present solutions, although parts are missing."""

    parameters: ClassVar[Parameters] = {"at_most": ONCE}

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """Submit as soon as there is a solution."""
        payloads = solutions(view, decision)
        if not payloads or any(output.final for output in decision.outputs):
            return decision
        occasion.add_act(f"submitted {counted(len(payloads), 'part')}, which was all that it had")
        return Decision.submit(view, occasion.payloads.joined(payloads, view.agent))


class NeverSubmit(OnTurn):
    """The agent consumes the parts of the answer, and does not submit the answer."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """Remove the answer from the decision."""
        if not any(output.final for output in decision.outputs):
            return decision
        occasion.add_act(f"took {_work_text(view)} and kept the answer back")
        return decision.model_copy(update={"outputs": []})

    async def incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Answer ``None`` to a caller from outside the team."""
        answer = await call.proceed()
        if call.caller is not None or not self.should_act(occasion):
            return answer
        occasion.add_act("kept its answer back")
        return None


class DiscardNeeded(Injector):
    """The agent discards work unseen; work is seen only if there is no other event."""

    parameters: ClassVar[Parameters] = {"at_most": ONCE}

    # Of one activation: `change_view` is called before `change_plan`.
    _discarded: list[str]

    def change_view(self, view: View, occasion: Occasion) -> View:
        """Hide the events to be discarded."""
        self._discarded = []
        for i, event in enumerate(view.events):
            if is_work(event) and self.should_act(occasion, "event", i):
                self._discarded.append(event.id)
                occasion.add_act("threw a message away")
        events = tuple(event for event in view.events if event.id not in self._discarded)
        return replace(view, events=events) if events else view

    def change_plan(self, view: View, plan: Plan, occasion: Occasion) -> Plan:
        """Discard the hidden events, besides the target's decision."""
        if not self._discarded or isinstance(plan.decision, str):
            return plan
        discards = [EventFate(event=event, fate="discard") for event in self._discarded]
        # Everything is discarded: the target has seen it all, and its own decision does not count.
        if len(discards) == len(view.events):
            return Plan(plan.think_s, Decision(fates=discards))
        fates = [fate for fate in plan.decision.fates if fate.event not in self._discarded]
        decision = plan.decision.model_copy(update={"fates": fates + discards})
        return Plan(plan.think_s, decision)

    async def faulty_incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Ignore the call."""
        occasion.add_act("threw a call away")
        return None


class IgnoreNotes(Injector):
    """The agent sees neither notes nor system events (runs with healing alone have these)."""

    # Of one activation: `change_view` is called before `change_plan`. ``None``: not acted.
    _visible: tuple[Pending, ...] | None

    def change_view(self, view: View, occasion: Occasion) -> View:
        """Hide notes and system events."""
        has_notes = any(event.notes or event.sender == SYSTEM for event in view.events)
        self._visible = None
        if not has_notes or not self.should_act(occasion):
            return view
        occasion.add_act("did not read the notes of the monitor")
        self._visible = tuple(
            replace(e, notes=(), about=()) for e in view.events if e.sender != SYSTEM
        )
        return replace(view, events=self._visible) if self._visible else view

    def change_plan(self, view: View, plan: Plan, occasion: Occasion) -> Plan:
        """Decide nothing, if all inputs are system events."""
        if self._visible != () or isinstance(plan.decision, str):
            return plan
        return Plan(plan.think_s, Decision())
