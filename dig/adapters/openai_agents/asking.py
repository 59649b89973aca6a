"""What the agent that has the turn has asked others, and who has not answered yet."""

from __future__ import annotations

from typing import Any

from dig.adapters import Session, Turn
from dig.adapters.base.calls import Sent

Question = tuple[str, str, Any]
"""What an agent was asked by another: the event, the agent, the payload."""


class Asking:
    """The questions of one turn; used inside steps of the session."""

    def __init__(self, session: Session) -> None:
        """Begin with none."""
        self._session = session
        self._sent = Sent("", None)
        self._open: list[Question] = []

    def ask(self, turn: Turn, payload: Any, agent: str, seat: str) -> str:
        """An agent asks another, and awaits the answer.

        What it has asked another already, or the same one that has not answered yet, is the same
        event: so it shows that work is done twice.
        """
        same = (event for event, who, said in self._open if who == agent and said == payload)
        event = next(same, None) or self._sent.again(payload, agent)
        if event is None:
            event = turn.send(payload, (seat,))
            self._sent.add(event, payload, agent)
        else:
            turn.wait_for()
            self._session.redirect(event, (seat,), payload)
        self._open.append((event, agent, payload))
        return event

    def answered(self, question: Question, *, failed: bool) -> None:
        """An agent that was asked has answered, or failed: then asking again is another try."""
        if question in self._open:
            self._open.remove(question)
        if failed:
            self._sent.forget(question[0])
