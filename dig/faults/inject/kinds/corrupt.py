"""A message carries something else than was meant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnMessage, Parameter, Parameters
from dig.faults.inject.payloads import TRANSFORMS, damaged
from dig.runtime.agents import NewEvent, View

ANY = "any"


class Corrupt(OnMessage):
    """One of the transforms that are known for the payloads of the task; answers too."""

    parameters: ClassVar[Parameters] = {
        "how": Parameter(
            meaning="The transform; `any` draws one that fits the payload.",
            default=ANY,
            choices=(ANY, *TRANSFORMS),
        )
    }
    takes_final = True

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message with a damaged payload, if it can be damaged so."""
        found = self._damaged(message.payload, moment)
        if not found:
            return [message]
        how = moment.choice(sorted(found), "how", index)
        other = message.model_copy(update={"payload": found[how]})
        moment.tell(f"a payload was damaged: {how}", output=other)
        return [other]

    def _damaged(self, payload: Any, moment: Moment) -> dict[str, Any]:
        transforms = moment.payloads.transforms
        hows = transforms if self.chosen["how"] == ANY else [self.chosen["how"]]
        made = {how: transforms[how](payload) for how in hows if how in transforms}
        return {how: one for how, one in made.items() if one is not None and one != payload}

    async def asks(self, call: Call, go: Go, moment: Moment) -> Any:
        """The call carries something else."""
        if not self.happens(moment):
            return await go(call)
        moment.tell(f"what it called {call.agent} with was damaged")
        return await go(replace(call, args=damaged(call.args), kwargs=damaged(call.kwargs)))

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """The answer is something else."""
        answer = await go(call)
        if not self.happens(moment, "answer"):
            return answer
        moment.tell("its answer was damaged")
        return damaged(answer)
