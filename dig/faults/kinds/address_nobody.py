"""A message goes to somebody who does not exist."""

from __future__ import annotations

from dig.faults.injector import Moment, OnMessage
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
