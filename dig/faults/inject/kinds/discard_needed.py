"""An agent throws work away that is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import ONCE, Injector, Moment, Parameters, is_work
from dig.runtime.agents import Decision, EventFate, Plan, View


class DiscardNeeded(Injector):
    """Is not shown the work that it throws away, unless there is nothing else in front of it."""

    parameters: ClassVar[Parameters] = {"at_most": ONCE}

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        """Begin with nothing thrown away."""
        super().__init__(chosen)
        self._thrown: list[str] = []

    def seen(self, view: View, moment: Moment) -> View:
        """The view without what is thrown away."""
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

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """It throws the call away."""
        if not self.happens(moment):
            return await go(call)
        moment.tell("threw a call away")
        return None
