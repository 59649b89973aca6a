"""Who works on what: the handlers of a workflow's executors, told to a session as turns.

Each method is made in one step of the session, so whatever fails in here stays in here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_framework import Workflow, WorkflowMessage
from agent_framework._workflows._const import INTERNAL_SOURCE_ID

from dig.adapters import Session, Turn
from dig.adapters.base.calls import calling

from .messages import Letter, Mail, Work, parcels
from .payloads import answer, is_notice, shown
from .post import Post
from .routes import foreseen

Handoff = Callable[[Any, Any], bool]
"""Whether an executor that was given the first has only handed it on, by sending the second."""


class Team(Post):
    """The executors of a workflow, and what is between them."""

    def __init__(self, workflow: Workflow, end: str, session: Session, handoff: Handoff) -> None:
        """Begin with nobody at work."""
        super().__init__(workflow, end, session)
        self._handoff = handoff
        self._works: dict[Turn, Work] = {}

    def begin(self, mail: Mail) -> Work | None:
        """A handler begins."""
        if self.run is None:
            return None
        self.settle(self._undecided.get(mail.executor))
        if not self.session.monitor.graph.agents[mail.executor].incoming:
            self._bring(mail)  # else it would wait behind what is kept, and come too late
        turn = self.session.begin(mail.executor, mail.events)
        work = self._works[turn] = Work(mail, turn)
        self.run.given[mail.executor] = mail.message
        return work

    def send(self, message: WorkflowMessage) -> None:
        """A message is put into the workflow; what no handler has sent is not looked at."""
        turn = calling(self.session)
        work = self._works.get(turn) if turn is not None else None
        if work is not None and message.source_id == work.executor:
            work.sent.append(message)

    def finish(self, work: Work, outputs: list[Any]) -> None:
        """A handler has returned, and has put out these things for the outside."""
        del self._works[work.turn]
        if outputs:
            work.said = answer(outputs)
            if self.run is not None:
                self.run.said.append((work.executor, work.said))
        self._send_out(work)

    def take_up(self, messages: list[WorkflowMessage]) -> None:
        """A run begins with these; if not with one for one executor, the workflow gives them out.

        So what a checkpoint had on its way, or what somebody has replied to several questions,
        is one problem.
        """
        one = messages[0] if len(messages) == 1 else None
        is_for_one = one is not None and one.source_id == INTERNAL_SOURCE_ID(str(one.target_id))
        if self.run is None or is_for_one or not messages:
            return
        self.run.is_asked = True
        event = self.session.request([shown(message.data) for message in messages], (self.end,))
        mail = Mail(self.end, None, (event,))
        self._send_out(Work(mail, self.session.begin(self.end, mail.events), messages))

    def _send_out(self, work: Work) -> None:
        """What a turn has sent stands before its edges, which decide now or in the next step."""
        work.letters = [self._letter(message) for message in work.sent]
        if all(letter.is_decided for letter in work.letters):
            self.settle(work)
            return
        self._undecided[work.executor] = work
        for letter in work.letters:
            self._letters[id(letter.message)] = (work, letter)

    def fail(self, work: Work, error: BaseException) -> None:
        """A handler has raised, or was cancelled."""
        self._works.pop(work.turn, None)
        work.turn.fail(error, (self.end,))

    def give_up(self, error: BaseException) -> None:
        """No edge will decide any more, since the run has failed."""
        for work in self._undecided.values():
            work.turn.fail(error, (self.end,))
        for _, letter in self._letters.values():
            if letter.event and not letter.legs:
                self.session.redirect(letter.event, (self.end,))
        self._undecided.clear()
        self._letters.clear()

    def settle_all(self) -> None:
        """Nothing is decided any more in this run."""
        for work in tuple(self._undecided.values()):
            self.settle(work)
        self._letters.clear()

    def settle(self, work: Work | None) -> None:
        """End a turn with all that it has sent, as far as edges have decided about that."""
        if work is None:
            return
        if self._undecided.get(work.executor) is work:
            del self._undecided[work.executor]
        turn, handed_on = work.turn, self._handed_on(work)
        sent = parcels([letter for letter in work.letters if letter is not handed_on])
        waiting = [one for one in work.letters if one.is_lost or not (one.is_decided or one.legs)]
        for parcel in sent:
            turn.emit(parcel.payload, parcel.seats, parcel.type)
        for letter in waiting:
            turn.emit(letter.payload, (), letter.type)
        if work.is_last:
            self._say_last_words(work)
        if handed_on is not None:
            self._hand_on(work, handed_on)
        made = self._end(work)
        for parcel, event in zip(sent, made, strict=False):
            self.route(parcel.legs, event)
        for letter, event in zip(waiting, made[len(sent) :], strict=False):
            letter.event = event
            if letter.is_lost and self.run is not None:
                self.run.lost.append(event)

    def _end(self, work: Work) -> tuple[str, ...]:
        """End a turn, during which what it sends may go elsewhere; gives what it generated."""
        before, self._settling = len(work.turn.outputs), work
        try:
            work.turn.end()
        finally:
            self._settling = None
        return work.turn.outputs[before:]

    def _letter(self, message: WorkflowMessage) -> Letter:
        takers = {one: foreseen(one, message) for one in self._edges.get(message.source_id, ())}
        kind = "notice" if is_notice(message.data) else "message"
        return Letter(message, shown(message.data), kind, takers)

    def _say_last_words(self, work: Work) -> None:
        """What nobody in the team is given is part of the answer."""
        if work.said is not None:
            work.turn.emit(work.said, (self.end,))
        elif any(event.type != "notice" for event in work.turn.events):
            work.turn.emit(None, (self.end,), "notice")

    def _hand_on(self, work: Work, letter: Letter) -> None:
        event = work.mail.events[0]
        work.turn.pass_on(event, [executor for _, executor in letter.legs])
        self.route([(letter, *leg) for leg in letter.legs], event)

    def _handed_on(self, work: Work) -> Letter | None:
        """The letter with which an executor hands on what it was given by another one."""
        letters = [letter for letter in work.letters if letter.type != "notice"]
        graph, events = self.session.monitor.graph, work.mail.events
        if len(letters) != 1 or len(letters[0].legs) != 1 or len(events) != 1:
            return None
        event = graph.event(events[0])
        if event.final or graph.history.by(event.n) is None or not work.turn.holds(events[0]):
            return None
        given, sent = work.mail.message.data, letters[0].message.data
        is_handoff = self.session.guard(self._handoff, given, sent, otherwise=False)
        return letters[0] if is_handoff else None
