"""A message takes long to arrive."""

from __future__ import annotations

from typing import ClassVar

from dig.faults.injector import Moment, OnMessage, Parameter, Parameters
from dig.runtime.agents import NewEvent, View
from dig.runtime.delivery import Delayed, ToAgents


class Delay(OnMessage):
    """On its way for some seconds more; it may be overtaken."""

    parameters: ClassVar[Parameters] = {
        "seconds": Parameter(meaning="Seconds that a message arrives later.", default=90.0, null=0)
    }

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message, which arrives later."""
        seconds = self.chosen["seconds"]
        if not seconds:
            return [message]
        policy = Delayed(message.policy or ToAgents(tuple(message.to)), after_s=seconds)
        late = message.model_copy(update={"policy": policy})
        moment.tell(f"a message was delayed by {seconds:g} s", output=late)
        return [late]
