"""A message is generated, and lost on its way."""

from __future__ import annotations

from typing import Any

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnMessage
from dig.monitor.policies import Delayed, Expiring, ToAgents
from dig.runtime.agents import NewEvent, View

_MOMENT_S = 0.000_001


class Drop(OnMessage):
    """On its way for a moment, and then called back for good."""

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message, which never arrives."""
        on_its_way = Delayed(ToAgents(tuple(message.to)), after_s=1.0)
        lost = message.model_copy(update={"policy": Expiring(on_its_way, after_s=_MOMENT_S)})
        moment.tell("a message was lost", output=lost)
        return [lost]

    async def asks(self, call: Call, go: Go, moment: Moment) -> Any:
        """The call never arrives."""
        if self.happens(moment):
            moment.tell(f"its call of {call.agent} was lost")
            raise TimeoutError(f"no answer from {call.agent}")
        return await go(call)

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """The answer never arrives."""
        answer = await go(call)
        if self.happens(moment):
            moment.tell("its answer was lost")
            raise TimeoutError(f"no answer from {call.agent}")
        return answer
