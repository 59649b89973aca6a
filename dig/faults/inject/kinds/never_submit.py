"""An agent has the answer, and does not submit it."""

from __future__ import annotations

from typing import Any

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnTurn
from dig.runtime.agents import Decision, View


class NeverSubmit(OnTurn):
    """Consumes what the answer was made of, and keeps the answer to itself."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The same without the answer."""
        if not any(output.final for output in decision.outputs):
            return decision
        moment.tell("did not submit the answer that it had")
        return decision.model_copy(update={"outputs": []})

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """Who asks from outside is told nothing."""
        answer = await go(call)
        if call.caller is not None or not self.happens(moment):
            return answer
        moment.tell("did not give the answer that it had")
        return None
