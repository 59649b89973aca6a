"""An old message is sent again instead of a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnMessage
from dig.runtime.agents import Decision, NewEvent, View


class ReplayStale(OnMessage):
    """What the first message of the same type had, as from a cache that is never renewed."""

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        """Begin without having seen a message."""
        super().__init__(chosen)
        self._first: dict[str, Any] = {}  # type -> payload

    def watch(self, view: View, decision: Decision) -> None:
        """Keep the first of each type."""
        for message in decision.outputs:
            if not message.final:
                self._first.setdefault(message.type, message.payload)

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message with what the first one had."""
        payload = self._first.get(message.type, message.payload)
        if payload == message.payload:
            return [message]
        stale = message.model_copy(update={"payload": payload})
        moment.tell("an old message was sent instead of a new one", output=stale)
        return [stale]

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """The first answer that it has given, again."""
        answer = await go(call)
        first = self._first.setdefault(call.method, answer)
        if first is answer or not self.happens(moment):
            return answer
        moment.tell("an old answer was given instead of a new one")
        return first
