"""An agent takes everything in and says nothing."""

from __future__ import annotations

from typing import Any

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnTurn
from dig.runtime.agents import Decision, View


class Silent(OnTurn):
    """Consumes all that is in front of it, and generates nothing."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """To consume, and no more."""
        moment.tell("consumed everything and generated nothing")
        return Decision.respond(view)

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """It says nothing, without having worked."""
        if not self.happens(moment):
            return await go(call)
        moment.tell("answered nothing")
        return None
