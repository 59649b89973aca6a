"""Faults of the family `messages`: what an agent sends is lost, late, doubled, astray or wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import anyio

from dig.detectors.thresholds import MOST_SECONDS
from dig.faults.inject.injector import (
    AgentCall,
    Go,
    Moment,
    OnMessage,
    Parameter,
    Parameters,
)
from dig.faults.inject.payloads import TRANSFORMS, damaged
from dig.monitor.policies import Delayed, Disturbed, Expiring, ToAgents
from dig.runtime.agents import Decision, NewEvent, View

ANY = "any"
_MOMENT_S = 0.000_001


class Drop(OnMessage):
    """A message is generated, is on its way for a moment, and is then called back for good."""

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message, which never arrives."""
        on_its_way = Delayed(ToAgents(tuple(message.to)), after_s=1.0)
        lost = Disturbed(Expiring(on_its_way, after_s=_MOMENT_S))
        return self.changed(message, moment, "a message was lost", policy=lost)

    async def asks_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The call never arrives."""
        moment.tell(f"its call of {call.agent} was lost")
        raise TimeoutError(f"no answer from {call.agent}")

    async def answers(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The answer never arrives."""
        answer = await go(call)
        if self.happens(moment):
            moment.tell("its answer was lost")
            raise TimeoutError(f"no answer from {call.agent}")
        return answer


class Delay(OnMessage):
    """A message is on its way for some seconds more; other messages may overtake it."""

    parameters: ClassVar[Parameters] = {
        "seconds": Parameter(
            "Seconds that a message arrives later.", 90.0, null=0, most=MOST_SECONDS
        )
    }

    has_amount = True

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message, which arrives later."""
        seconds = self.chosen["seconds"] * self.strength(moment)
        if not seconds:
            return [message]
        policy = Delayed(message.policy or ToAgents(tuple(message.to)), after_s=seconds)
        what = f"a message was delayed by {seconds:g} s"
        return self.changed(message, moment, what, policy=Disturbed(policy))

    async def asks(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The call arrives later."""
        await self._wait(moment, f"its call of {call.agent}")
        return await go(call)

    async def answers(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The answer arrives later."""
        answer = await go(call)
        await self._wait(moment, "its answer")
        return answer

    async def _wait(self, moment: Moment, what: str) -> None:
        seconds = self.chosen["seconds"] * self.strength(moment)
        if seconds and self.happens(moment):
            moment.tell(f"{what} was delayed by {seconds:g} s")
            await anyio.sleep(seconds)


class Duplicate(OnMessage):
    """A message is sent several times: events with the same payload, to the same agents."""

    parameters: ClassVar[Parameters] = {
        "copies": Parameter("Copies besides the message.", 1, null=0, most=100)
    }

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The message, and its copies."""
        copies = [message.model_copy() for _ in range(self.chosen["copies"])]
        if copies:
            moment.tell(f"a message was sent {1 + len(copies)} times", output=copies[0])
        return [message, *copies]

    async def asks(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The call is made several times; the first answer counts."""
        answer = await go(call)
        copies = self.chosen["copies"]
        if copies and self.happens(moment):
            moment.tell(f"its call of {call.agent} was made {1 + copies} times")
            for _ in range(copies):
                await go(call)
        return answer


class Misaddress(OnMessage):
    """A message goes to as many other agents, chosen at random, as it has recipients."""

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message, to other agents."""
        others = [name for name in view.others if name not in message.to]
        if not others or not message.to:
            return [message]
        wrong = [
            moment.choice(others, f"message {index}, recipient", i) for i in range(len(message.to))
        ]
        to = list(dict.fromkeys(wrong))
        return self.changed(message, moment, "a message went to the wrong agent", to=to)

    async def asks_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """Another agent is called, if there is one."""
        if not call.others:
            return await go(call)
        wrong = moment.choice(call.others, "recipient")
        moment.tell(f"its call of {call.agent} went to {wrong}")
        return await go(replace(call, agent=wrong))


class AddressNobody(OnMessage):
    """A message goes to names that no agent has, so that it has no recipient."""

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message, to names that no agent has."""
        if not message.to:
            return [message]
        to = [f"{name}-assistant" for name in message.to]
        return self.changed(message, moment, "a message was addressed to nobody", to=to)

    async def asks_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The call fails, since no agent has the name that is called."""
        moment.tell(f"its call of {call.agent} was addressed to nobody")
        raise LookupError(f"there is no agent {call.agent}-assistant")


class Corrupt(OnMessage):
    """A payload is damaged by one of the transforms that the task has; answers are, too."""

    parameters: ClassVar[Parameters] = {
        "how": Parameter(
            "The transform; `any` draws one that fits the payload.", ANY, choices=(ANY, *TRANSFORMS)
        )
    }
    takes_final = True

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message with a damaged payload, if a transform fits it."""
        found = self._damaged(message.payload, moment)
        if not found:
            return [message]
        how = moment.choice(sorted(found), "how", index)
        return self.changed(message, moment, f"a payload was damaged: {how}", payload=found[how])

    def _damaged(self, payload: Any, moment: Moment) -> dict[str, Any]:
        transforms = moment.payloads.transforms
        hows = transforms if self.chosen["how"] == ANY else [self.chosen["how"]]
        made = {how: transforms[how](payload) for how in hows if how in transforms}
        return {how: one for how, one in made.items() if one is not None and one != payload}

    async def asks_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The call has damaged arguments."""
        moment.tell(f"what it called {call.agent} with was damaged")
        return await go(replace(call, args=damaged(call.args), kwargs=damaged(call.kwargs)))

    async def answers(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The answer is damaged."""
        answer = await go(call)
        if not self.happens(moment, "answer"):
            return answer
        moment.tell("its answer was damaged")
        return damaged(answer)


class ReplayStale(OnMessage):
    """A message has the payload of the first one of its type, as from a cache without renewal."""

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        """Begin without a message."""
        super().__init__(chosen)
        self._first: dict[str, Any] = {}  # type -> payload

    def watch(self, view: View, decision: Decision) -> None:
        """Keep the first message of each type."""
        for message in decision.outputs:
            if not message.final:
                self._first.setdefault(message.type, message.payload)

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The same message with the first one's payload."""
        payload = self._first.get(message.type, message.payload)
        if payload == message.payload:
            return [message]
        what = "an old message was sent instead of a new one"
        return self.changed(message, moment, what, payload=payload)

    async def answers(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The target's first answer, again."""
        answer = await go(call)
        first = self._first.setdefault(call.method, answer)
        if first is answer or not self.happens(moment):
            return answer
        moment.tell("an old answer was given instead of a new one")
        return first
