"""A message arrives more than once."""

from __future__ import annotations

from typing import Any, ClassVar

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnMessage, Parameter, Parameters
from dig.runtime.agents import NewEvent, View


class Duplicate(OnMessage):
    """Further events with the same payload, to the same agents."""

    parameters: ClassVar[Parameters] = {
        "copies": Parameter(meaning="Copies besides the message.", default=1, null=0, most=100)
    }

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The message, and its copies."""
        copies = [message.model_copy() for _ in range(self.chosen["copies"])]
        if copies:
            moment.tell(f"a message was sent {1 + len(copies)} times", output=copies[0])
        return [message, *copies]

    async def asks(self, call: Call, go: Go, moment: Moment) -> Any:
        """The call is made more than once; the first answer counts."""
        answer = await go(call)
        copies = self.chosen["copies"]
        if copies and self.happens(moment):
            moment.tell(f"its call of {call.agent} was made {1 + copies} times")
            for _ in range(copies):
                await go(call)
        return answer
