"""Messages on the way in a runtime: published, for each recipient.

What is sent to an agent that answers is a `Call`; both are taken up by `run`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autogen_agentchat.messages import BaseMessage
from autogen_core import FunctionCall
from autogen_core.models import FunctionExecutionResult

from dig.adapters import base


class PublishedMessage:
    """A published message, until all recipients are done.

    Attributes:
        event: The event of it.
    """

    def __init__(self, event: str, sender: base.Turn | None, recipients: int) -> None:
        self.event = event
        self._sender = sender
        self._open_recipients = recipients

    def end_turn(self, turn: base.Turn) -> None:
        """End a recipient's turn; the last recipient notifies the sender, if still at work."""
        self._open_recipients -= 1
        sender = self._sender
        if sender is None or self._open_recipients or not sender.is_open:
            turn.end()
        else:
            sender.receive(turn.end(None, (sender.instance,), "notice"))


@dataclass(eq=False)
class PublishedDelivery:
    """A published message, in front of an agent.

    Attributes:
        state: The state of the adapter.
        published: The message.
        instance: The instance of its agent that was reserved for it.
        received: The input of the turn that works on it (`Turn.received`).
        at_work: The deliveries that are being worked on.
        answer: The words of its agent to the outside while it worked on it.
    """

    state: base.AdapterState
    published: PublishedMessage
    instance: str
    received: tuple[str, Any]
    at_work: AtWork
    answer: Any = None

    @property
    def event(self) -> str:
        """The event of the message."""
        return self.published.event

    async def run(self, agent: base.RunAgent) -> Any:
        """Have the agent work on the message."""
        turn = self.state.step(self._begin, default=None)
        if turn is None:
            return await agent(self.instance, ())
        try:
            with base.inside(turn):
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
        """Discard the message, for lack of a handler."""
        turn = self._begin()
        del self.at_work[turn]
        turn.discard(self.event)
        turn.end()

    def _begin(self) -> base.Turn:
        turn = self.state.session.begin(self.instance, (self.event,))
        turn.received = self.received
        self.at_work[turn] = self
        return turn

    def _end(self, turn: base.Turn) -> None:
        if self.answer is None:
            self.published.end_turn(turn)
        else:  # it was published already, so it cannot come back
            turn.was_bounced(turn.submit(self.answer, bounces=False))


AtWork = dict[base.Turn, PublishedDelivery]
"""The deliveries that are being worked on, by turn."""


def payload_of(message: Any) -> Any:
    """A message of a runtime as plain JSON: the fields, and the name of the type."""
    payload = base.as_payload(message, _words)
    return {"type": type(message).__name__, **payload} if isinstance(payload, dict) else payload


_NO_WORDS = frozenset({"id", "call_id", "created_at", "models_usage"})


def _words(value: Any) -> Any:
    """A message of AutoGen's own without id, time and cost, new for each message."""
    if isinstance(value, BaseMessage | FunctionExecutionResult):
        return {name: field for name, field in value if name not in _NO_WORDS}
    if isinstance(value, FunctionCall):
        return {"name": value.name, "arguments": value.arguments}
    return value


def completed_run(result: Any = None, error: BaseException | None = None) -> base.RunAgent:
    """An agent with a result or an error already there."""

    async def run(agent: str, notes: tuple[str, ...]) -> Any:
        if error is not None:
            raise error
        return result

    return run
