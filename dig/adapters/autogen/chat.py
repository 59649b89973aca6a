"""What a session is told of a group chat: who has the floor, and what goes to whom.

A participant's turn goes on until its manager knows who is next, since that is whom its words are
for. Each method is made in one step of the session, so whatever fails in here stays in here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autogen_agentchat.agents import UserProxyAgent
from autogen_agentchat.messages import HandoffMessage

from dig.adapters import Session, Turn
from dig.adapters.base.patching import Teller
from dig.adapters.base.turn import describe

from .said import answer_of, dropped, is_silent, listeners, payload_of, task_of

IsHandoff = Callable[[Any], bool]
"""Whether a handoff passes on what its sender was given, instead of saying something."""


class Chat(Teller):
    """The floor of one group chat.

    Attributes:
        again: Whose answer came back, so that it has to speak once more.
    """

    def __init__(self, session: Session, team: Any, is_handoff: IsHandoff | None) -> None:
        """Begin with nobody speaking."""
        super().__init__(session)
        self.again: str | None = None
        self._team = team
        self._is_handoff = is_handoff
        self._handoffs = {
            one.name: getattr(one, "_handoffs", None) or {} for one in team._participants
        }
        self._task: tuple[Any] | None = None  # what came from outside, until it is known for whom
        self._next: list[str] = []  # who is asked to speak, until all of them are known
        self._mail: dict[str, list[str]] = {}  # participant -> what it is given with its next turn
        self._turns: dict[str, Turn] = {}  # by participant: speaking, or waiting for who is next
        self._said: dict[str, Any] = {}  # by participant: its response, in the order of these
        self._shown: dict[Turn, int] = {}  # how many notes a turn was shown
        self._lost: dict[str, list[str]] = {}  # by participant: handoffs to it that were dropped
        self._persons = {one.name for one in team._participants if isinstance(one, UserProxyAgent)}
        self._is_over = False

    # --- the manager ---

    def begin_request(self, messages: Any) -> None:
        """Somebody outside asks the team; whatever was left over from before is over."""
        self.close()
        self._lost.clear()
        self._is_over = False
        self._task = (task_of(messages, self._team.name),)

    def hear(self, message: Any) -> None:
        """The manager looks at what a participant has said."""
        if message.name in self._turns:
            self._said[message.name] = message
        self._next.clear()

    def ask(self, participant: str) -> None:
        """The manager asks a participant to speak."""
        self._next.append(participant)

    def place(self) -> None:
        """It is known who is next: what was said is for them."""
        speakers, self._next = self._next, []
        if not speakers or self.again in speakers:
            return
        if self._task is not None:
            (task,), self._task = self._task, None
            self._begin_with(task, speakers)
        for name in self._pending():
            self._hand_over(name, listeners(self._team, self._said[name], speakers))

    def submit(self, bounces: bool, pauses: bool) -> str:
        """The chat is about to end: the last word is the answer, and is held.

        Args:
            bounces: Whether it can be sent back; never what a person has said.
            pauses: Whether a person is waited for, with all that is open.
        """
        *others, last = self._pending() or [""]
        if not last:
            return ""
        turn = self._turns[last]
        if pauses:
            others += [name for name in self._turns if name not in self._said]
            self._gather(turn)
        if others:  # branches of a graph have ended beside it: the answer is what all have said
            turn.wait_for(len(others))
            for name in others:
                words = self._words(name) if name in self._said else None
                said = self._turns[name].end(words, (turn.seat,))
                self.session.let_go(said)  # nothing is delivered here that could wait
                turn.receive(said)
                self._forget(name)
        may_bounce = bounces and not self.is_lost and last not in self._persons
        return turn.submit(self._words(last), bounces=may_bounce)

    def has_back(self, answer: str) -> bool:
        """Whether the answer has come back, and its participant has to speak once more."""
        for name in self._pending():
            if self._turns[name].came_back(answer):
                self.again = name
                del self._said[name]
                return True
            self._forget(name)
        return False

    def end_request(self, error: str | None = None) -> None:
        """The chat is over, whatever came of it."""
        last = self.again or next(reversed(self._pending()), None)
        if last is not None and not self._is_over:
            turn = self._turns[last]
            words = self._words(last) if last in self._said else turn.events[-1].payload
            answer = {"error": error} if error else words
            turn.came_back(turn.submit(answer, error=error, bounces=False))
            self._forget(last)
        self._is_over = True
        for name in self._pending():
            self.spoken(name)

    def fail_request(self, error: BaseException) -> None:
        """The manager has raised: whoever has spoken last has no answer."""
        self.end_request(describe(error))

    # --- a participant ---

    def mail_of(self, participant: str) -> tuple[str, ...]:
        """What a participant is given with its next turn; it may be held."""
        self.place()
        return tuple(self._mail.get(participant, ()))

    def begin(self, participant: str) -> Turn:
        """A participant begins to speak, or goes on when its answer came back."""
        if self.again == participant:
            self.again = None
            return self._turns[participant]
        events = self._mail.pop(participant, [])
        turn = self._turns[participant] = self.session.begin(participant, events)
        return turn

    def wait_for_person(self, participant: str, turn: Turn) -> None:
        """Whoever has the floor may be a person."""
        if participant in self._persons:
            turn.waits()

    def notes_for(self, turn: Turn) -> tuple[str, ...]:
        """What a turn was told, and its agent has not been shown."""
        shown, self._shown[turn] = self._shown.get(turn, 0), len(turn.notes)
        return () if self.only_looks else turn.notes[shown:]

    def spoken(self, participant: str) -> None:
        """A participant has spoken; if nobody listens any more, its turn is over."""
        if self._is_over and participant in self._turns:
            self._turns[participant].end()
            self._forget(participant)

    def fail(self, participant: str, error: BaseException) -> None:
        """A participant has raised or was cancelled, which is the answer of the whole team."""
        turn = self._turns.get(participant)
        if turn is not None:
            turn.fail(error, submits=not self._is_over)
            self._forget(participant)
            self._is_over = True

    def give_up(self, participant: str, error: BaseException) -> None:
        """A participant was cancelled while what it is given was held."""
        for event in self._mail.get(participant, ()):
            self.session.let_go(event)
        self.begin(participant)
        self.fail(participant, error)

    # --- inside ---

    def close(self) -> None:
        """Nothing more will be told: whoever speaks still is not listened to."""
        for name in tuple(self._turns):
            self._turns[name].end()
            self._forget(name)

    def _gather(self, turn: Turn) -> None:
        """A person is waited for: what is open elsewhere is a part of what that is asked."""
        mails, self._mail = self._mail, {}
        lost = [event for events in self._lost.values() for event in events]
        self._lost.clear()
        for event in lost:
            self.session.redirect(event, (turn.seat,))
        for name, events in mails.items():
            for event in events:
                self.session.let_go(event)
            waiting = self.session.begin(name, events)
            for event in events:
                waiting.pass_on(event, (turn.seat,))
            waiting.end()
        gathered = [*lost, *(event for mail in mails.values() for event in mail)]
        turn.wait_for(len(gathered))
        for event in gathered:
            self.session.let_go(event)
            turn.receive(event)

    def _pending(self) -> list[str]:
        """Who has spoken, and it is not known who is next."""
        return [name for name in self._said if name in self._turns]

    def _begin_with(self, task: Any, speakers: list[str]) -> None:
        """Give what came from outside to who begins; the manager splits it, if several do."""
        if len(speakers) == 1:
            self._post(speakers[0], [self.session.request(task, speakers)])
            return
        manager = self.session.reserve(self._team._group_chat_manager_name)
        event = self.session.request(task, (manager,))
        self.session.let_go(event)  # a manager waits for nothing
        turn = self.session.begin(manager, (event,))
        for name in speakers:
            turn.emit(task, (name,))
        turn.end()
        for name, part in zip(speakers, turn.outputs, strict=True):
            self._post(name, [part])

    def _post(self, name: str, events: list[str]) -> None:
        """Put events in front of a participant, with handoffs to it that were dropped before."""
        lost = self._lost.pop(name, [])
        for event in lost:
            self.session.redirect(event, (name,))
        self._mail.setdefault(name, []).extend([*events, *lost])

    def _hand_over(self, name: str, to: list[str]) -> None:
        """End a turn: what it was given goes on if it has said nothing, else what it has said."""
        turn, message = self._turns[name], answer_of(self._said[name])
        given = [one.id for one in turn.events if turn.holds(one.id) and not one.final]
        lost = dropped(self._said[name], self._handoffs[name])
        before = len(turn.outputs)
        if given and not lost and self._passes_on(name, message):
            for event in given:
                turn.pass_on(event, to)
            turn.end()
            for listener in to:
                self._post(listener, given)
        else:
            kind = "handoff" if isinstance(message, HandoffMessage) else "message"
            for listener in to:
                turn.emit(self._words(name), (listener,), kind)
            for target in lost:
                turn.emit({"handoff": target}, (), "handoff")
            turn.end()
            made = turn.outputs[before:]
            for listener, event in zip(to, made, strict=False):
                self._post(listener, [event])
            for target, event in zip(lost, made[len(to) :], strict=False):
                self._lost.setdefault(target, []).append(event)
        self._forget(name)

    def _passes_on(self, name: str, message: Any) -> bool:
        if not isinstance(message, HandoffMessage):
            return False
        if self._is_handoff is not None:
            return bool(self.session.guard(self._is_handoff, message, otherwise=False))
        return is_silent(message, self._handoffs[name])

    def _words(self, name: str) -> Any:
        message = answer_of(self._said[name])
        return None if message is None else payload_of(message)

    def _forget(self, name: str) -> None:
        turn = self._turns.pop(name, None)
        self._said.pop(name, None)
        if turn is not None:
            self._shown.pop(turn, None)
        if self.again == name:
            self.again = None
