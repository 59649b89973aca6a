"""A message is generated, and lost on its way."""

from __future__ import annotations

from dig.faults.injector import Moment, OnMessage
from dig.runtime.agents import NewEvent, View
from dig.runtime.delivery import Delayed, Expiring, ToAgents

_MOMENT_S = 0.000_001


class Drop(OnMessage):
    """On its way for a moment, and then called back for good."""

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message, which never arrives."""
        on_its_way = Delayed(ToAgents(tuple(message.to)), after_s=1.0)
        lost = message.model_copy(update={"policy": Expiring(on_its_way, after_s=_MOMENT_S)})
        moment.tell("a message was lost", output=lost)
        return [lost]
