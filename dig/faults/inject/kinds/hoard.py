"""An agent keeps everything and always waits."""

from __future__ import annotations

from typing import Any

import anyio

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnTurn
from dig.runtime.agents import Decision, View


class Hoard(OnTurn):
    """Leaves all that is in front of it where it is."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """To wait."""
        moment.tell("waited, and kept everything")
        return Decision.wait()

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """It waits for as long as the fault lasts, and does not answer before."""
        if self.happens(moment):
            moment.tell("waited, and did not answer")
            await anyio.sleep(call.remaining_s)
        return await go(call)
