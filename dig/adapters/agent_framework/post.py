"""What is between executors: messages that stand before edges, and those that edges have given out.

Each method is made in one step of the session, so whatever fails in here stays in here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_framework import Workflow, WorkflowMessage
from agent_framework._workflows._const import INTERNAL_SOURCE_ID

from dig.adapters import Session
from dig.adapters.base.patching import Teller
from dig.detectors.interventions import Reroute

from .messages import Edges, Leg, Letter, Mail, Work
from .payloads import shown
from .routes import Takers, chosen, foreseen, is_join
from .run import Run

NEVER_RAN = RuntimeError(
    "the workflow was unwrapped before this executor had all that it waits for"
)
"""What a trace says of a join that nobody will look at; it is never raised."""


class Post(Teller):
    """What is between the executors of a workflow.

    Attributes:
        end: The agent that stands for the end of the workflow.
        run: The run in progress, if one is.
        moved: What healing has sent to another executor, and that has not reached it yet.
    """

    def __init__(self, workflow: Workflow, end: str, session: Session) -> None:
        """Begin with nothing on its way."""
        super().__init__(session)
        self.end = end
        self.run: Run | None = None
        self.moved: set[str] = set()
        self._executors = workflow.executors
        self._runner = workflow._runner
        self._edges: dict[str, list[Edges]] = workflow._runner._edge_runner_map
        self._undecided: dict[str, Work] = {}  # executor -> what its edges have to decide about
        self._letters: dict[int, tuple[Work, Letter]] = {}  # of those, by the id of the message
        self._settling: Work | None = None  # whose turn ends just now
        self._routed: dict[tuple[int, Edges, str], tuple[Any, str]] = {}  # ... -> message, event
        self._joining: dict[Edges, list[str]] = {}  # what a join has of its sources
        self._selected: dict[Edges, list[str]] = {}
        self._due: dict[tuple[int, str], Mail] = {}  # by the id of the message, and executor

    @property
    def has_iterations_left(self) -> bool:
        """Whether the run may go on: the framework counts its steps."""
        return bool(self._runner._iteration < self._runner._max_iterations)

    # --- edges decide ---

    def select(self, edges: Edges, executors: list[str]) -> None:
        """A group's function has selected executors for the message that it is asked about."""
        self._selected[edges] = executors

    def reach(self, edges: Edges, message: WorkflowMessage) -> tuple[str, ...]:
        """A group of edges is given a message; a join keeps it until it has all.

        Returns:
            What is held of it: the join gets it when that is released.
        """
        if not is_join(edges):
            return ()
        takers = foreseen(edges, message) or ()
        found = [self._event(edges, executor, message) for executor in takers]
        events = tuple(filter(None, found))
        self._joining.setdefault(edges, []).extend(events)
        return tuple(filter(self.session.is_held, events))

    def pass_by(self, edges: Edges, message: WorkflowMessage) -> None:
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
        self._bring(mail)
        mail.is_held = any(map(self.session.is_held, events))
        return mail

    def _bring(self, mail: Mail) -> None:
        """See to it that an executor has what it is given: of equal messages it had one already."""
        for event in mail.events:
            is_there = mail.executor in self.session.seats_of(event)
            if not is_there and not self.session.is_held(event):
                self.session.redirect(event, (mail.executor,), shown(mail.message.data))

    def readdress(self, mail: Mail) -> str:
        """Something has been sent to another executor; says who gets this."""
        seats = self.session.seats_of(mail.events[0]) if mail.events[0] in self.moved else ()
        if seats:
            self.moved.remove(mail.events[0])
            del self._due[id(mail.message), mail.executor]
            mail.executor = seats[0]
            self._due[id(mail.message), mail.executor] = mail
        return mail.executor

    def take(self, message: Any, executor: str) -> Mail | None:
        """What an executor takes up now."""
        return self._due.pop((id(message), executor), None)

    def _event(self, edges: Edges, executor: str, message: WorkflowMessage) -> str:
        """The event of a message that edges give to an executor; empty: nobody has sent it."""
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
            self.settle(work)
        if letter.is_decided:
            self._letters.pop(id(letter.message), None)
            if letter.event and not letter.legs:  # nothing is lost: that is how the team is made
                self.session.redirect(letter.event, (self.end,))

    def settle(self, work: Work | None) -> None:
        """It is known where what a handler has sent goes, or must be told as far as it is."""
        raise NotImplementedError

    def route(self, legs: list[Leg], event: str) -> None:
        """An event is to go these ways."""
        for letter, edges, executor in legs:
            letter.event = event
            self._routed[id(letter.message), edges, executor] = (letter.message, event)

    def veto(self, wish: Reroute) -> str | None:
        """Why a message cannot go to another executor at this moment."""
        if self.is_lost:
            return "the wrapper has failed, and may be wrong about who gets it"
        ways = [(key[1], message) for key, (message, event) in self._routed.items()
                if event == wish.event]  # fmt: skip
        if not ways and self._settling is not None:
            ways = [(leg[0], one.message) for one in self._settling.letters for leg in one.legs]
        ways += [(None, mail.message) for mail in self._due.values() if wish.event in mail.events]
        if len(wish.to) != 1 or wish.to[0] not in self._executors:
            return "a message goes to one executor"
        if not ways or any(edges is not None and is_join(edges) for edges, _ in ways):
            return "it has reached its executor, or a join waits for it"
        if len(self.session.monitor.graph.event(wish.event).flight) != 1:
            return "several executors are given it"
        if not all(self._executors[wish.to[0]].can_handle(message) for _, message in ways):
            return f"{wish.to[0]} cannot take it"
        self.moved.add(wish.event)
        return None

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
            for event in mail.events:
                self.session.let_go(event)
            turn = self.session.begin(mail.executor, mail.events)
            for event in mail.events:
                turn.discard(event)
            turn.fail(NEVER_RAN)

    def put_aside(self) -> list[Mail]:
        """What joins wait with, which nobody waits for in this run any more."""
        joining, self._joining = self._joining, {}
        return self._in_front(
            Mail(edges._edge_group.edges[0].target_id, None, tuple(events))
            for edges, events in joining.items()
        )

    def put_away(self) -> list[Mail]:
        """All that nobody will take up any more, since the run has failed."""
        due, self._due = self._due, {}
        routed, self._routed = self._routed, {}
        sent = (
            Mail(executor, message, (event,))
            for (_, _, executor), (message, event) in routed.items()
        )
        return [*self._in_front([*due.values(), *sent]), *self.put_aside()]

    def _in_front(self, mails: Iterable[Mail]) -> list[Mail]:
        """What still lies in front of its executor: equal messages are one event, used up once."""
        kept: list[Mail] = []
        seen: set[tuple[str, str]] = set()
        for mail in mails:
            mine = [
                event
                for event in dict.fromkeys(mail.events)
                if (event, mail.executor) not in seen
                and (self.session.is_held(event) or mail.executor in self.session.seats_of(event))
            ]
            seen.update((event, mail.executor) for event in mine)
            if mine:
                kept.append(Mail(mail.executor, mail.message, tuple(mine)))
        return kept
