"""A message takes long to arrive."""

from __future__ import annotations

from typing import Any, ClassVar

import anyio

from dig.detectors.thresholds import MOST_SECONDS
from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnMessage, Parameter, Parameters
from dig.monitor.policies import Delayed, ToAgents
from dig.runtime.agents import NewEvent, View


class Delay(OnMessage):
    """On its way for some seconds more; it may be overtaken."""

    parameters: ClassVar[Parameters] = {
        "seconds": Parameter(
            meaning="Seconds that a message arrives later.", default=90.0, null=0, most=MOST_SECONDS
        )
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

    async def asks(self, call: Call, go: Go, moment: Moment) -> Any:
        """The call arrives later."""
        await self._wait(moment, f"its call of {call.agent}")
        return await go(call)

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """The answer arrives later."""
        answer = await go(call)
        await self._wait(moment, "its answer")
        return answer

    async def _wait(self, moment: Moment, what: str) -> None:
        seconds = self.chosen["seconds"]
        if seconds and self.happens(moment):
            moment.tell(f"{what} was delayed by {seconds:g} s")
            await anyio.sleep(seconds)
