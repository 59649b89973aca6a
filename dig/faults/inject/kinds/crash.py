"""An agent fails: its activations end with an error."""

from __future__ import annotations

from typing import Any

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Injector, Moment
from dig.runtime.agents import Plan, View


class Crash(Injector):
    """An error instead of a decision; its inputs stay with it, and its host tries again."""

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """An error."""
        if not self.happens(moment):
            return plan
        moment.tell("failed instead of deciding")
        return Plan(plan.think_s, "the agent's answer could not be read")

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """It raises."""
        if not self.happens(moment):
            return await go(call)
        moment.tell("raised an error")
        raise RuntimeError(f"{call.agent} has failed")
