"""An agent is slow."""

from __future__ import annotations

from typing import Any, ClassVar

import anyio

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Injector, Moment, Parameter, Parameters
from dig.runtime.agents import Plan, View


class Slow(Injector):
    """Takes several times as long to decide the same."""

    parameters: ClassVar[Parameters] = {
        "factor": Parameter(
            meaning="How many times as long each activation takes.",
            default=20.0,
            null=1,
            least=1,
            most=1_000_000,
        )
    }

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """The same decision, later."""
        factor = self.chosen["factor"]
        if factor == 1 or not self.happens(moment):
            return plan
        moment.tell(f"took {factor:g} times as long", since_start=True)
        return Plan(plan.think_s * factor, plan.decision)

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """The same answer, later."""
        factor, began = self.chosen["factor"], anyio.current_time()
        answer = await go(call)
        if factor > 1 and self.happens(moment):
            moment.tell(f"took {factor:g} times as long")
            await anyio.sleep((factor - 1) * (anyio.current_time() - began))
        return answer
