"""An agent hangs: its activations take very long."""

from __future__ import annotations

from typing import Any, ClassVar

import anyio

from dig.detectors.thresholds import MOST_SECONDS
from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Injector, Moment, Parameter, Parameters
from dig.runtime.agents import Plan, View


class Stall(Injector):
    """Adds to the think time; its host may cut the activation off, as any that takes too long."""

    parameters: ClassVar[Parameters] = {
        "seconds": Parameter(
            meaning="Seconds that each activation takes longer.",
            default=600.0,
            null=0,
            most=MOST_SECONDS,
        )
    }

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """The same decision, much later."""
        seconds = self.chosen["seconds"]
        if not seconds or not self.happens(moment):
            return plan
        moment.tell(f"took {seconds:g} s longer", since_start=True)
        return Plan(plan.think_s + seconds, plan.decision)

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """It hangs before it works."""
        seconds = self.chosen["seconds"]
        if seconds and self.happens(moment):
            moment.tell(f"hung for {seconds:g} s")
            await anyio.sleep(seconds)
        return await go(call)
