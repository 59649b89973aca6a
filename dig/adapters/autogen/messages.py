"""Messages on their way in a runtime: one that was published, for one of its recipients.

What is sent to an agent that answers is a `Call`; both are taken up by `run`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autogen_agentchat.messages import BaseMessage
from autogen_core import FunctionCall
from autogen_core.models import FunctionExecutionResult

from dig.adapters.base import AdapterState, RunAgent, Turn, as_payload, inside


class PublishedMessage:
    """A message that was published, until all that got it are done with it.

    Attributes:
        event: The event of it.
    """

    def __init__(self, event: str, sender: Turn | None, recipients: int) -> None:
        """A message that has just been published."""
        self.event = event
        self._sender = sender
        self._left = recipients

    def done(self, turn: Turn) -> None:
        """A recipient ends its turn; the last one lets the sender know, if it is still at work."""
        self._left -= 1
        sender = self._sender
        if sender is None or self._left or not sender.is_open:
            turn.end()
        else:
            sender.receive(turn.end(None, (sender.instance,), "notice"))


@dataclass(eq=False)
class PublishedDelivery:
    """A published message, in front of one agent.

    Attributes:
        state: The state of the adapter.
        published: The message.
        instance: The instance of its agent that was reserved for it.
        received: The input of the turn that works on it (`Turn.received`).
        at_work: The deliveries that are being worked on.
        answer: The words of its agent to the outside while it worked on it.
    """

    state: AdapterState
    published: PublishedMessage
    instance: str
    received: tuple[str, Any]
    at_work: AtWork
    answer: Any = None

    @property
    def event(self) -> str:
        """The event of the message."""
        return self.published.event

    async def run(self, agent: RunAgent) -> Any:
        """Have the agent work on it."""
        turn = self.state.step(self._begin, default=None)
        if turn is None:
            return await agent(self.instance, ())
        try:
            with inside(turn):
                result = await agent(self.instance, turn.notes)
        except BaseException as error:
            self.state.step(turn.fail, error, default="")
            raise
        else:
            self.state.step(self._end, turn, default=None)
        finally:
            self.at_work.pop(turn, None)
        return result

    def ignore(self) -> None:
        """The agent has no handler for it."""
        turn = self._begin()
        del self.at_work[turn]
        turn.discard(self.event)
        turn.end()

    def _begin(self) -> Turn:
        turn = self.state.session.begin(self.instance, (self.event,))
        turn.received = self.received
        self.at_work[turn] = self
        return turn

    def _end(self, turn: Turn) -> None:
        if self.answer is None:
            self.published.done(turn)
        else:  # it was published already, so it cannot come back
            turn.was_bounced(turn.submit(self.answer, bounces=False))


AtWork = dict[Turn, PublishedDelivery]
"""The deliveries that are being worked on, by turn."""


def told(message: Any) -> Any:
    """A message of a runtime as plain JSON: its fields, and the name of its type."""
    payload = as_payload(message, _words)
    return {"type": type(message).__name__, **payload} if isinstance(payload, dict) else payload


_NO_WORDS = frozenset({"id", "call_id", "created_at", "models_usage"})


def _words(value: Any) -> Any:
    """A message of AutoGen's own without what is new for each: its id, time and cost."""
    if isinstance(value, BaseMessage | FunctionExecutionResult):
        return {name: one for name, one in value if name not in _NO_WORDS}
    if isinstance(value, FunctionCall):
        return {"name": value.name, "arguments": value.arguments}
    return value


def ended(result: Any = None, error: BaseException | None = None) -> RunAgent:
    """An agent that has returned or raised already."""

    async def run(agent: str, notes: tuple[str, ...]) -> Any:
        if error is not None:
            raise error
        return result

    return run
