"""A message goes to somebody who does not exist."""

from __future__ import annotations

from typing import Any

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnMessage
from dig.runtime.agents import NewEvent, View


class AddressNobody(OnMessage):
    """To names that nobody has, so that it has no recipient."""

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message, to nobody."""
        if not message.to:
            return [message]
        astray = message.model_copy(update={"to": [f"{name}-assistant" for name in message.to]})
        moment.tell("a message was addressed to nobody", output=astray)
        return [astray]

    async def asks(self, call: Call, go: Go, moment: Moment) -> Any:
        """Nobody is called."""
        if not self.happens(moment):
            return await go(call)
        moment.tell(f"its call of {call.agent} was addressed to nobody")
        raise LookupError(f"there is no agent {call.agent}-assistant")
