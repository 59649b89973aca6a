"""An agent leaves the team."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Change, Injector, Moment


class Leave(Injector):
    """Leaves when the window begins; comes back when it ends, with nothing in front of it."""

    def script(
        self, moment: Moment, start_s: float, end_s: float | None
    ) -> Sequence[tuple[float, Change]]:
        """To leave, and to come back."""
        if not self.happens(moment):
            return ()
        return ((start_s, "leave"),) if end_s is None else ((start_s, "leave"), (end_s, "join"))

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """It is not there."""
        if not self.happens(moment):
            return await go(call)
        moment.tell("was not there any more")
        raise LookupError(f"{call.agent} has left the team")
