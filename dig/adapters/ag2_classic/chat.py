"""What a session is told of one chat: who has the floor, and what becomes of what was said last.

In a chat one agent speaks at a time. Whom its words are for is known when the next one has the
floor, or when the chat is over; so that is when its turn ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dig.adapters import Turn
from dig.adapters.base.calls import Sent
from dig.adapters.base.patching import LOST_TRACK, Teller

from .members import may_reply
from .talk import as_message, handoffs, is_handoff, words

Handoff = Callable[[Mapping[str, Any]], bool]


class Chat(Teller):
    """One chat, from its beginning to its last word; of one that got lost nothing more is told.

    Attributes:
        last: The agent that has spoken last, or is next.
        mail: The events that are in front of the agent that is next.
        answer: The event that its latest answer has become.
        is_answered: Whether its answer has been accepted; who goes on then speaks from outside.
    """

    tells_on = False

    def __init__(
        self, team: Teller, handoff: Handoff | None, caller: Turn | None, *, is_direct: bool
    ) -> None:
        """Begin with nothing said.

        Args:
            team: What is known of all chats of its team; once it is lost, nothing is sent back.
            handoff: Whether a message only hands over; ``None``: if it calls nothing but one of
                its agent's handoffs.
            caller: The turn in whose code the chat was begun; ``None``: it comes from outside.
            is_direct: Whether it is one turn of one agent, whose reply nobody else gets.
        """
        super().__init__(team.session)
        self._team = team
        self.last: Any = None
        self.mail: list[str] = []
        self.is_answered = False
        self._handoff = handoff
        self._caller = caller
        self._is_asked = False  # whether the caller awaits an answer
        self._is_direct = is_direct
        self._turn: Turn | None = None  # of who has spoken last, or is next
        self._sender: Any = None  # to whom the reply goes
        self._seat = ""
        self._said: Any = None
        self._reply: Mapping[str, Any] = {}
        self._error: BaseException | None = None
        self._is_persons = False  # whether a person speaks for who has the floor
        self.answer = ""

    # --- one turn, in the order in which it happens ---

    def give(self, agent: Any, message: Any, sender: Any) -> None:
        """An agent is to have the floor: what was said last is for it, and came by the sender."""
        self._sender = sender
        self.step(self._give, agent, words(message), otherwise=None)

    def begin(self) -> None:
        """It begins, once what it is given is not held any more."""
        self.step(self._begin, otherwise=None)

    @property
    def turn(self) -> Turn | None:
        """The turn of who has the floor, unless the wrapper has lost track."""
        return None if self.is_lost else self._turn

    def notes(self, turn: Turn) -> tuple[str, ...]:
        """What is to be shown to who has the floor, as of now."""
        return self.step(turn.listen, otherwise=())

    def wait_for_person(self) -> None:
        """A person is asked: by the agent that has the floor, or after it has spoken."""
        self.step(self._wait_for_person, otherwise=None)

    def answers(self, reply: Any, *, is_end: bool) -> str:
        """What an agent says is submitted, if it ends a chat that somebody outside has begun.

        Returns:
            The answer; empty, if it is none.
        """
        if self._caller is not None or reply is None or not (is_end or self._is_direct):
            return ""
        return self.step(self._submit, words(reply), otherwise="")

    def ends(self) -> str:
        """Nobody is next: what was said last is submitted, if somebody outside has begun."""
        if self._caller is not None or self._error is not None:
            return ""
        return self.step(self._submit, self._said, otherwise="")

    def has_back(self) -> bool:
        """Whether the answer was sent back, so that its agent has the floor once more."""
        return self.step(self._has_back, otherwise=False)

    def say(self, reply: Any, name: str) -> None:
        """An agent has spoken; ``None``: it has let the last word stand."""
        if reply is not None:
            self.step(self._say, reply, name, otherwise=None)

    def fail(self, error: BaseException) -> None:
        """An agent has raised, or was cancelled before it could begin."""
        self.step(self._fail, error, otherwise=None)

    # --- the end ---

    def close(self, error: BaseException | None = None) -> str:
        """The chat is over; gives the event that its last word has become, if it has."""
        return self.step(self._close, error, otherwise="")

    def hand(self) -> None:
        """Its last word is handed over: nobody keeps it any more."""
        self.step(self._hand, otherwise=None)

    def go_on(self) -> None:
        """Somebody has gone on after the answer: what is said next comes from outside."""
        self.is_answered, self._turn = False, None

    def held(self, events: list[str]) -> list[str]:
        """Those of some events that are on their way still."""
        return [one for one in events if self.step(self.session.is_held, one, otherwise=False)]

    # --- steps ---

    def lose_track(self) -> None:
        """What was said so far comes to nothing, which may look as if an answer were too early."""
        self._team.is_lost = True
        self._fail(LOST_TRACK)
        self._close(LOST_TRACK)
        self._hand()

    def _give(self, agent: Any, payload: Any) -> None:
        turn = self._turn
        if turn is not None and self.last is agent and self._error is None:
            self.mail = [turn.send(payload, (turn.seat,))]  # it has the floor again
            return
        seat = self.session.reserve(agent.name)
        if turn is None:
            self.mail = [self._first(agent.name, seat, payload)]
        elif self._error is not None:
            self.mail = [turn.fail(self._error, (seat,))]
        else:
            self.mail = self._handed(turn, seat, payload)
        self._seat, self.last, self._turn, self._error = seat, agent, None, None
        self._is_persons = False

    def _first(self, name: str, seat: str, payload: Any) -> str:
        """What somebody outside, or the turn that has begun this chat, says to an agent."""
        caller, session = self._caller, self.session
        if caller is None or not caller.is_open:
            self._caller = None  # its turn is over: this is nobody's work any more
            return session.request(payload, (seat,))
        self._is_asked = True
        sent = caller.sent = caller.sent or Sent("", None)
        again = sent.again(payload, name)
        if again is not None:
            caller.wait_for()
            session.redirect(again, (seat,), payload)
            return again
        event = caller.send(payload, (seat,))
        sent.add(event, payload, name)
        return event

    def _say(self, reply: Any, name: str) -> None:
        self._said, self._reply = words(reply), as_message(reply, name)

    def _handed(self, turn: Turn, seat: str, payload: Any) -> list[str]:
        """A turn ends: what it was given goes on if it has only handed over, else its words do."""
        before, given = len(turn.outputs), [one.id for one in turn.events if turn.holds(one.id)]
        if given and not before and self.session.guard(self._only_hands_over, otherwise=False):
            for event in given:
                turn.pass_on(event, (seat,))
            turn.end()
            return given
        turn.emit(payload, (seat,))
        for lost in handoffs(self._reply, self.last)[:-1]:
            turn.emit(words(lost), (), "handoff")
        turn.end()
        return [turn.outputs[before]]

    def _only_hands_over(self) -> bool:
        if self._handoff is not None:
            return self._handoff(self._reply)
        return is_handoff(self._reply, self.last)

    def _begin(self) -> None:
        if self._turn is None:
            self._turn = self.session.begin(self._seat, self.mail)
        else:
            for event in self.mail:
                self._turn.receive(event)
        self.mail = []

    def _wait_for_person(self) -> None:
        self._is_persons = True
        if self._turn is not None:
            self._turn.waits()

    def _submit(self, payload: Any) -> str:
        turn = self._turn
        stays = self._team.is_lost or self._is_persons or not may_reply(self.last, self._sender)
        self.answer = turn.submit(payload, bounces=not stays) if turn is not None else ""
        return self.answer

    def _has_back(self) -> bool:
        turn = self._turn
        if turn is not None and turn.came_back(self.answer):
            return True
        self.is_answered, self._turn = True, None
        return False

    def _fail(self, error: BaseException) -> None:
        for event in (*self.mail, self.answer):
            self.session.let_go(event)
        if self.mail:
            self._begin()
        self._error = error

    def _close(self, error: BaseException | None) -> str:
        turn, caller, error = self._turn, self._caller, error or self._error
        if turn is None or not turn.is_open:
            return ""
        to = (caller.seat,) if caller is not None and caller.is_open else ()
        if error is not None:
            self.answer = turn.fail(error, to, submits=caller is None)
        elif caller is None:
            self.answer = turn.submit(self._said, bounces=False)
        else:
            kind = "notice" if self._said is None else "message"
            self.answer = turn.end(self._said, to, kind)
        return self.answer

    def _hand(self) -> None:
        if self._turn is not None and self._caller is None:
            self._turn.came_back(self.answer)
        if self._caller is not None and self._is_asked:
            self._caller.receive(self.answer)
        self._turn = None
