"""What is on its way in a runtime: a message that was published, for one of its recipients.

What is sent to an agent that answers is a `Call`; both are taken up by `through`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dig.runtime.wrap import Session, Turn, as_payload
from dig.runtime.wrap.calls import Sent, Work
from dig.runtime.wrap.running import inside

Said = Callable[[Turn], Any]
"""What a turn has said to the outside, if it has; then that is its answer."""


class Post:
    """A published message, in front of one agent.

    Attributes:
        event: The event of it.
    """

    def __init__(self, session: Session, event: str, seat: str, sent: Sent, said: Said) -> None:
        """It waits for the agent of a seat, which was reserved for it."""
        self.event = event
        self._session = session
        self._seat = seat
        self._sent = sent
        self._said = said

    async def through(self, work: Work) -> Any:
        """Have the agent work on it."""
        turn = self._session.begin(self._seat, (self.event,))
        turn.sent = self._sent
        try:
            with inside(turn):
                result = await work(self._seat, turn.notes)
        except BaseException as error:
            turn.fail(error)
            raise
        said = self._said(turn)
        if said is None:
            turn.end()
        else:  # it was published already, so it cannot come back
            turn.came_back(turn.submit(said, bounces=False))
        return result

    def ignore(self) -> None:
        """The agent has no handler for it."""
        turn = self._session.begin(self._seat, (self.event,))
        turn.discard(self.event)
        turn.end()


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
