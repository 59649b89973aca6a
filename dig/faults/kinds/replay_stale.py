"""An old message is sent again instead of a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig.faults.injector import Moment, OnMessage
from dig.runtime.agents import Decision, NewEvent, View


class ReplayStale(OnMessage):
    """The first message of the same type that the target has sent before, as from a full cache."""

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        """Begin without having seen a message."""
        super().__init__(chosen)
        self._first: dict[str, tuple[int, Any]] = {}  # type -> turn, payload

    def watch(self, view: View, decision: Decision) -> None:
        """Keep the first of each type."""
        for message in decision.outputs:
            if not message.final:
                self._first.setdefault(message.type, (view.turn, message.payload))

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message with what the first one had."""
        turn, payload = self._first.get(message.type, (view.turn, None))
        if turn == view.turn or payload == message.payload:
            return [message]
        stale = message.model_copy(update={"payload": payload})
        moment.tell("an old message was sent instead of a new one", output=stale)
        return [stale]
