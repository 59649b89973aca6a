"""Faults of the family `messages`: lost, late, doubled, misaddressed or damaged messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import anyio

from dig.detectors.thresholds import MOST_SECONDS
from dig.faults.inject.injector import AgentCall, Occasion, OnMessage, Parameter, Parameters
from dig.faults.inject.payload_changes import TRANSFORMS, damage
from dig.monitor.policies import Delayed, Disturbed, Expiring, ToAgents
from dig.runtime.agents import Decision, NewEvent, View

ANY = "any"
_MOMENT_S = 0.000_001


class Drop(OnMessage):
    """A message is generated, is in flight for a moment, and then expires."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """Have the message expire in flight."""
        # Due after a second and recalled long before that: generated, but never delivered.
        in_flight = Delayed(ToAgents(tuple(message.to)), after_s=1.0)
        policy = Disturbed(Expiring(in_flight, after_s=_MOMENT_S))
        return self.change_message(message, occasion, "sent a message that was lost", policy=policy)

    async def faulty_outgoing_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Lose the call."""
        occasion.add_act(f"called {call.agent}, and the call was lost")
        raise TimeoutError(f"no answer from {call.agent}")

    async def incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Lose the answer."""
        answer = await call.proceed()
        if self.should_act(occasion):
            occasion.add_act("gave an answer that was lost")
            raise TimeoutError(f"no answer from {call.agent}")
        return answer


class Delay(OnMessage):
    """A message is in flight for some seconds more; later messages may overtake."""

    parameters: ClassVar[Parameters] = {
        "seconds": Parameter(
            "Seconds that a message arrives later.", 90.0, null=0, most=MOST_SECONDS
        )
    }

    has_amount = True

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """Delay the message."""
        seconds = self.values["seconds"] * self.strength(occasion)
        if not seconds:
            return [message]
        policy = Delayed(message.policy or ToAgents(tuple(message.to)), after_s=seconds)
        description = f"sent a message that was delayed by {seconds:g} s"
        return self.change_message(message, occasion, description, policy=Disturbed(policy))

    async def outgoing_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Delay the call."""
        await self._wait(occasion, f"called {call.agent}, and the call")
        return await call.proceed()

    async def incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Delay the answer."""
        answer = await call.proceed()
        await self._wait(occasion, "gave an answer that")
        return answer

    async def _wait(self, occasion: Occasion, what: str) -> None:
        seconds = self.values["seconds"] * self.strength(occasion)
        if seconds and self.should_act(occasion):
            occasion.add_act(f"{what} was delayed by {seconds:g} s")
            await anyio.sleep(seconds)


class Duplicate(OnMessage):
    """A message is sent several times: events with the same payload, to the same agents."""

    parameters: ClassVar[Parameters] = {
        "copies": Parameter("Copies besides the message.", 1, null=0, most=100)
    }

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """Add the copies of the message."""
        copies = [message.model_copy() for _ in range(self.values["copies"])]
        if copies:
            occasion.add_act(f"sent a message {1 + len(copies)} times", output=copies[0])
        return [message, *copies]

    async def outgoing_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Make the call several times; the first answer counts."""
        answer = await call.proceed()
        copies = self.values["copies"]
        if copies and self.should_act(occasion):
            occasion.add_act(f"called {call.agent} {1 + copies} times")
            for _ in range(copies):
                await call.proceed()
        return answer


class Misaddress(OnMessage):
    """A message goes to other agents, drawn at random, as many as there are recipients."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """Readdress the message to other agents."""
        agents = [name for name in view.others if name not in message.to]
        if not agents or not message.to:
            return [message]
        wrong = [
            occasion.choice(agents, f"message {index}, recipient", i)
            for i in range(len(message.to))
        ]
        # Two draws may hit the same agent.
        to = list(dict.fromkeys(wrong))
        return self.change_message(message, occasion, "sent a message to the wrong agent", to=to)

    async def faulty_outgoing_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Call another agent, if there is another."""
        if not call.others:
            return await call.proceed()
        wrong = occasion.choice(call.others, "recipient")
        occasion.add_act(f"called {wrong} in place of {call.agent}")
        return await replace(call, agent=wrong).proceed()


class AddressNobody(OnMessage):
    """A message goes to names of no agent, and so to no recipient."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """Readdress the message to names of no agent."""
        if not message.to:
            return [message]
        to = [f"{name}-assistant" for name in message.to]
        return self.change_message(message, occasion, "addressed a message to nobody", to=to)

    async def faulty_outgoing_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Fail the call: no agent has the name."""
        occasion.add_act(f"addressed its call of {call.agent} to nobody")
        raise LookupError(f"there is no agent {call.agent}-assistant")


class Corrupt(OnMessage):
    """A payload is damaged by a transform of the task; the payload of an answer, too."""

    parameters: ClassVar[Parameters] = {
        "how": Parameter(
            "The transform; `any` draws one that fits the payload.", ANY, choices=(ANY, *TRANSFORMS)
        )
    }
    takes_final = True

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """Damage the payload, if a transform fits."""
        payload, transforms = message.payload, occasion.payloads.transforms
        hows = transforms if self.values["how"] == ANY else [self.values["how"]]
        payloads = {
            transform: transforms[transform](payload)
            for transform in hows
            if transform in transforms
        }
        payloads = {h: p for h, p in payloads.items() if p is not None and p != payload}
        if not payloads:
            return [message]
        # Sorted, so that the draw does not depend on the order of a table.
        transform = occasion.choice(sorted(payloads), "how", index)
        return self.change_message(
            message, occasion, f"sent a damaged message: {transform}", payload=payloads[transform]
        )

    async def faulty_outgoing_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Damage the arguments of the call."""
        occasion.add_act(f"called {call.agent} with damaged arguments")
        return await replace(call, args=damage(call.args), kwargs=damage(call.kwargs)).proceed()

    async def incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Damage the answer."""
        answer = await call.proceed()
        if not self.should_act(occasion, "answer"):
            return answer
        occasion.add_act("gave a damaged answer")
        return damage(answer)


class ReplayStale(OnMessage):
    """A message has the payload of the first message of the type, as from a stale cache."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        # Also from before the window: a cache is filled long before it goes stale.
        self._first: dict[str, Any] = {}  # type -> payload

    def observe(self, view: View, decision: Decision) -> None:
        """Keep the first message of each type."""
        for message in decision.outputs:
            if not message.final:
                self._first.setdefault(message.type, message.payload)

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """Replace the payload by the first of the type."""
        payload = self._first.get(message.type, message.payload)
        if payload == message.payload:
            return [message]
        description = "sent an old message instead of a new one"
        return self.change_message(message, occasion, description, payload=payload)

    async def incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Return the target's first answer again."""
        answer = await call.proceed()
        first = self._first.setdefault(call.method, answer)
        if first is answer or not self.should_act(occasion):
            return answer
        occasion.add_act("gave an old answer instead of a new one")
        return first
