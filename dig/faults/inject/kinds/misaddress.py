"""A message goes to the wrong agents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnMessage
from dig.runtime.agents import NewEvent, View


class Misaddress(OnMessage):
    """To as many others, chosen at random, as it was meant for."""

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message, to others."""
        others = [name for name in view.others if name not in message.to]
        if not others or not message.to:
            return [message]
        wrong = [
            moment.choice(others, f"message {index}, recipient", i) for i in range(len(message.to))
        ]
        astray = message.model_copy(update={"to": list(dict.fromkeys(wrong))})
        moment.tell("a message went to the wrong agent", output=astray)
        return [astray]

    async def asks(self, call: Call, go: Go, moment: Moment) -> Any:
        """Another agent is called."""
        if not call.others or not self.happens(moment):
            return await go(call)
        wrong = moment.choice(call.others, "recipient")
        moment.tell(f"its call of {call.agent} went to {wrong}")
        return await go(replace(call, agent=wrong))
