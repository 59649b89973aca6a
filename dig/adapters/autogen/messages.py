"""What is on its way in a runtime: a message that was published, for one of its recipients.

What is sent to an agent that answers is a `Call`; both are taken up by `run`.
"""

from __future__ import annotations

from typing import Any

from dig.adapters.base import AdapterState, RunAgent, SentMessages, Turn, as_payload, inside


class PublishedMessage:
    """A message that was published, until all that got it are done with it.

    Attributes:
        event: The event of it.
    """

    def __init__(self, event: str, sender: Turn | None, recipients: int) -> None:
        """It has just been published."""
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


class PublishedDelivery:
    """A published message, in front of one agent.

    Attributes:
        answer: What its agent has said to the outside while it worked on it.
    """

    def __init__(
        self,
        state: AdapterState,
        published: PublishedMessage,
        instance: str,
        sent: SentMessages,
        at_work: AtWork,
    ) -> None:
        """It waits for an agent, of which an instance was reserved for it."""
        self.answer: Any = None
        self._state = state
        self._published = published
        self._instance = instance
        self._sent = sent
        self._at_work = at_work

    @property
    def event(self) -> str:
        """The event of the message."""
        return self._published.event

    async def run(self, agent: RunAgent) -> Any:
        """Have the agent work on it."""
        turn = self._state.step(self._begin, default=None)
        if turn is None:
            return await agent(self._instance, ())
        try:
            with inside(turn):
                result = await agent(self._instance, turn.notes)
        except BaseException as error:
            self._state.step(turn.fail, error, default="")
            raise
        else:
            self._state.step(self._end, turn, default=None)
        finally:
            self._at_work.pop(turn, None)
        return result

    def ignore(self) -> None:
        """The agent has no handler for it."""
        turn = self._begin()
        del self._at_work[turn]
        turn.discard(self.event)
        turn.end()

    def _begin(self) -> Turn:
        turn = self._state.session.begin(self._instance, (self.event,))
        turn.sent = self._sent
        self._at_work[turn] = self
        return turn

    def _end(self, turn: Turn) -> None:
        if self.answer is None:
            self._published.done(turn)
        else:  # it was published already, so it cannot come back
            turn.was_bounced(turn.submit(self.answer, bounces=False))


AtWork = dict[Turn, PublishedDelivery]
"""What is being worked on, by turn."""


def told(message: Any) -> Any:
    """A message of a runtime as plain JSON: its fields, and the name of its type."""
    payload = as_payload(message)
    return {"type": type(message).__name__, **payload} if isinstance(payload, dict) else payload


def returning(result: Any) -> RunAgent:
    """An agent that has returned already."""

    async def run(agent: str, notes: tuple[str, ...]) -> Any:
        return result

    return run


def raising(error: BaseException) -> RunAgent:
    """An agent that has raised already."""

    async def run(agent: str, notes: tuple[str, ...]) -> Any:
        raise error

    return run
