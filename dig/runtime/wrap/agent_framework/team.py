"""What a session is told of a workflow: which event lies in front of whom, and who works on what.

Each method is made in one step of the session, so whatever fails in here stays in here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_framework import WorkflowMessage
from agent_framework._workflows._const import INTERNAL_SOURCE_ID

from dig.runtime.wrap import Session
from dig.runtime.wrap.calls import calling

from .payloads import answer, is_notice, shown
from .routes import Takers, chosen, foreseen, is_join
from .run import Run
from .work import Edges, Letter, Mail, Work, parcels

Handoff = Callable[[Any, Any], bool]

NEVER_RAN = RuntimeError(
    "the workflow was unwrapped before this executor had all that it waits for"
)
"""What a trace says of a join that nobody will look at; it is never raised."""


class Team:
    """The executors of a workflow, and what is between them.

    Attributes:
        session: The session.
        end: The agent that stands for the end of the workflow.
        run: The run in progress, if one is.
        is_lost: Whether a step has failed, so that what is known here may be wrong.
    """

    def __init__(
        self, edges: dict[str, list[Edges]], end: str, session: Session, handoff: Handoff
    ) -> None:
        """Begin with nothing on its way.

        Args:
            edges: The groups of edges that lead away from each executor.
            end: The agent that stands for the end.
            session: The session.
            handoff: Whether an executor that was given the first has only handed it on, by
                sending the second.
        """
        self.session = session
        self.end = end
        self.run: Run | None = None
        self.is_lost = False
        self._edges = edges
        self._handoff = handoff
        self._works: dict[Any, Work] = {}  # by turn
        self._undecided: dict[str, Work] = {}  # executor -> what its edges have to decide about
        self._letters: dict[int, tuple[Work, Letter]] = {}  # of those, by the id of the message
        self._routed: dict[tuple[int, Edges, str], tuple[Any, str]] = {}  # ... -> message, event
        self._joining: dict[Edges, list[str]] = {}  # what a join has of its sources
        self._selected: dict[Edges, list[str]] = {}
        self._due: dict[tuple[int, str], Mail] = {}  # by the id of the message, and executor

    # --- edges ---

    def selects(self, edges: Edges, executors: list[str]) -> None:
        """A group's function has selected executors for the message that it is asked about."""
        self._selected[edges] = executors

    def reach(self, edges: Edges, message: WorkflowMessage) -> None:
        """A group of edges is given a message; a join keeps it until it has all."""
        if is_join(edges):
            for executor in foreseen(edges, message) or ():
                if event := self._event(edges, executor, message):
                    self._joining.setdefault(edges, []).append(event)

    def leave(self, edges: Edges, message: WorkflowMessage) -> None:
        """A group of edges is done with a message; if it has given it to nobody, that is known."""
        self._selected.pop(edges, None)
        work, letter = self._letters.get(id(message), (None, None))
        if work is not None and letter is not None and letter.takers.get(edges, ()) is None:
            self._decide(work, letter, edges, ())

    def arrive(self, edges: Edges, executor: str, message: WorkflowMessage) -> Mail | None:
        """Edges give a message to an executor; ``None``: that is no part of a run."""
        if self.run is None:
            return None
        if is_join(edges):
            events = tuple(dict.fromkeys(self._joining.pop(edges, ())))
        else:
            event = self._event(edges, executor, message)
            events = (event,) if event else ()
        if not events:  # nobody in the team has sent it, so it has come from outside
            self.run.is_asked = True
            events = (self.session.request(shown(message.data), (executor,)),)
        mail = self._due[id(message), executor] = Mail(executor, message, events)
        return mail

    def due(self, message: Any, executor: str) -> Mail | None:
        """What an executor takes up now."""
        return self._due.pop((id(message), executor), None)

    def _event(self, edges: Edges, executor: str, message: WorkflowMessage) -> str:
        work, letter = self._letters.get(id(message), (None, None))
        if work is not None and letter is not None:
            selected = self._selected.get(edges, [executor])
            self._decide(work, letter, edges, chosen(edges, message, selected))
        routed = self._routed.pop((id(message), edges, executor), None)
        if routed is not None:
            return routed[1]
        event = letter.event if letter is not None else ""
        if event and letter is not None:  # it was decided after its turn was over
            self.session.redirect(event, (executor,), letter.payload)
        return event

    def _decide(self, work: Work, letter: Letter, edges: Edges, takers: Takers) -> None:
        """A group of edges has decided about a message."""
        if letter.takers.get(edges, ()) is None:
            letter.takers[edges] = takers
        is_clear = takers or all(one.is_decided for one in work.letters)
        if is_clear and self._undecided.get(work.executor) is work:
            self._settle(work)
        if letter.is_decided and work not in self._undecided.values():
            self._letters.pop(id(letter.message), None)
            if letter.event and not self.session.seats_of(letter.event):
                self._drop(letter)

    def _drop(self, letter: Letter) -> None:
        """No edge wanted it: that is how the workflow is made, and nothing is lost."""
        graph = self.session.monitor.graph
        if not any(letter.takers.values()) and not graph.event(letter.event).consumed:
            self.session.redirect(letter.event, (self.end,))

    # --- handlers ---

    def begin(self, mail: Mail) -> Work | None:
        """A handler begins."""
        if self.run is None:
            return None
        self._settle(self._undecided.get(mail.executor))
        for event in mail.events:
            if mail.executor not in self.session.seats_of(event):  # it had it once already
                self.session.redirect(event, (mail.executor,), shown(mail.message.data))
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
        work.letters = [self._letter(work, message) for message in work.sent]
        if all(letter.is_decided for letter in work.letters):
            self._settle(work)
            return
        self._undecided[work.executor] = work
        for letter in work.letters:
            self._letters[id(letter.message)] = (work, letter)

    def fail(self, work: Work, error: BaseException) -> None:
        """A handler has raised, or was cancelled."""
        self._works.pop(work.turn, None)
        work.turn.fail(error, (self.end,))

    def _letter(self, work: Work, message: WorkflowMessage) -> Letter:
        takers = {edges: foreseen(edges, message) for edges in self._edges.get(work.executor, ())}
        kind = "notice" if is_notice(message.data) else "message"
        return Letter(message, shown(message.data), kind, takers)

    # --- what a handler has sent is told, once it is known where it goes ---

    def settle_all(self) -> None:
        """Nothing is decided any more in this run."""
        for work in tuple(self._undecided.values()):
            self._settle(work)
        self._letters.clear()

    def _settle(self, work: Work | None) -> None:
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
            handed_on.event = work.mail.events[0]
            turn.pass_on(handed_on.event, [executor for _, executor in handed_on.legs])
            self._route([(handed_on, *leg) for leg in handed_on.legs], handed_on.event)
        before = len(turn.outputs)
        turn.end()
        made = turn.outputs[before:]
        for parcel, event in zip(sent, made, strict=False):
            self._route(parcel.legs, event)
        for letter, event in zip(waiting, made[len(sent) :], strict=False):
            letter.event = event

    def _route(self, legs: list[tuple[Letter, Edges, str]], event: str) -> None:
        for letter, edges, executor in legs:
            letter.event = event
            self._routed[id(letter.message), edges, executor] = (letter.message, event)

    def _say_last_words(self, work: Work) -> None:
        """What nobody in the team is given is part of the answer."""
        if work.said is not None:
            work.turn.emit(work.said, (self.end,))
        elif any(event.type != "notice" for event in work.turn.events):
            work.turn.emit(None, (self.end,), "notice")

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

    # --- a run ends ---

    def inner(self, executor: str) -> Edges | None:
        """The edge from an executor to itself, on which the framework brings it what is for it."""
        return next(iter(self._edges.get(INTERNAL_SOURCE_ID(executor), ())), None)

    def send_back(self, event: str, message: WorkflowMessage) -> WorkflowMessage:
        """A message, as it is to be put into the workflow once more, for an answer came back."""
        executor = str(message.target_id)
        self._routed[id(message), self.inner(executor), executor] = (message, event)
        return message

    def forget_joins(self) -> None:
        """Joins may wait from one run to the next; now nobody looks at them any more."""
        for mail in self.put_aside():
            self.session.begin(mail.executor, mail.events).fail(NEVER_RAN)

    def put_aside(self) -> list[Mail]:
        """What joins wait with, which nobody waits for in this run any more."""
        kept = [
            Mail(edges._edge_group.edges[0].target_id, None, tuple(events))
            for edges, events in self._joining.items()
        ]
        self._joining.clear()
        return kept

    def put_away(self) -> list[Mail]:
        """All that nobody will take up any more, since the run has failed."""
        sent = [
            Mail(executor, message, (event,))
            for (_, _, executor), (message, event) in self._routed.items()
        ]
        kept = [*self._due.values(), *self.put_aside(), *sent]
        self._due.clear()
        self._routed.clear()
        return kept
