"""What is on its way in a runtime: a message that was published, for one of its recipients.

What is sent to an agent that answers is a `Call`; both are taken up by `through`.
"""

from __future__ import annotations

from typing import Any

from dig.adapters import Turn, as_payload
from dig.adapters.base.calls import Sent, Work
from dig.adapters.base.patching import Teller
from dig.adapters.base.running import inside


class Published:
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
            sender.receive(turn.end(None, (sender.seat,), "notice"))


class Post:
    """A published message, in front of one agent.

    Attributes:
        answer: What its agent has said to the outside while it worked on it.
    """

    def __init__(
        self, teller: Teller, published: Published, seat: str, sent: Sent, at_work: AtWork
    ) -> None:
        """It waits for the agent of a seat, which was reserved for it."""
        self.answer: Any = None
        self._teller = teller
        self._published = published
        self._seat = seat
        self._sent = sent
        self._at_work = at_work

    @property
    def event(self) -> str:
        """The event of the message."""
        return self._published.event

    async def through(self, work: Work) -> Any:
        """Have the agent work on it."""
        turn = self._teller.step(self._begin, otherwise=None)
        if turn is None:
            return await work(self._seat, ())
        try:
            with inside(turn):
                result = await work(self._seat, turn.notes)
        except BaseException as error:
            self._teller.step(turn.fail, error, otherwise="")
            raise
        else:
            self._teller.step(self._end, turn, otherwise=None)
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
        turn = self._teller.session.begin(self._seat, (self.event,))
        turn.sent = self._sent
        self._at_work[turn] = self
        return turn

    def _end(self, turn: Turn) -> None:
        if self.answer is None:
            self._published.done(turn)
        else:  # it was published already, so it cannot come back
            turn.came_back(turn.submit(self.answer, bounces=False))


AtWork = dict[Turn, Post]
"""What is being worked on, by whose turn."""


def told(message: Any) -> Any:
    """A message of a runtime as plain JSON: its fields, and the name of its type."""
    payload = as_payload(message)
    return {"type": type(message).__name__, **payload} if isinstance(payload, dict) else payload


def returning(result: Any) -> Work:
    """Work that is done already."""

    async def work(agent: str, notes: tuple[str, ...]) -> Any:
        return result

    return work


def raising(error: BaseException) -> Work:
    """Work that has failed already."""

    async def work(agent: str, notes: tuple[str, ...]) -> Any:
        raise error

    return work
