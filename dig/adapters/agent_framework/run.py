"""One run of a workflow: what it was asked, what it has come to, and whether that comes back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_framework import WorkflowMessage
from agent_framework._workflows._const import INTERNAL_SOURCE_ID

from dig.adapters import Turn

from .payloads import shown

if TYPE_CHECKING:
    from .team import Team

DROPPED = RuntimeError("the stream was dropped before its end, and another run has begun")
"""What a trace says of a run that nobody looks at any more; it is never raised."""


class Run:
    """One run, from the call of `Workflow.run` to its end; used inside steps of the session.

    Attributes:
        has_begun: Whether its first step has.
        is_asked: Whether something has come from outside.
        given: What each executor has worked on last.
        said: What executors have put out, in order.
        asks: What executors ask somebody outside; the run is over then, and goes on with another.
        lost: What executors have sent to nobody.
    """

    def __init__(self, team: Team) -> None:
        """Begin."""
        self.has_begun = False
        self.is_asked = False
        self.given: dict[str, WorkflowMessage] = {}
        self.said: list[tuple[str, Any]] = []
        self.asks: list[Any] = []
        self.lost: list[str] = []
        self._team = team
        self._session = team.session
        self._is_over = False
        self._came_back: Any = None  # the answer that did, in words
        self._turn: Turn | None = None  # of the end, while it is not known whether it is accepted

    @property
    def answer(self) -> str:
        """The answer that was submitted and has not been accepted yet."""
        return self._turn.submitted if self._turn is not None else ""

    def last_words(self) -> tuple[str, ...]:
        """What the end has been given, a part of which a gate may keep."""
        state = self._session.monitor.graph.agents[self._team.end]
        return (*state.buffer, *state.incoming)

    def note_pending(self, requests: list[Any]) -> None:
        """Executors wait for these answers from outside, whether they asked in this run or not."""
        self.asks = [shown(data) for data in requests]

    def submit(self) -> None:
        """The workflow has nothing left to do: its end submits what it has come to."""
        self._team.settle_all()
        if not self.is_asked:
            return
        if self.asks:
            self._hand_to_end()
        turn = self._turn = self._session.begin(self._team.end)
        turn.submit(self._told(), bounces=bool(self._submitters(turn)))

    def again(self) -> list[WorkflowMessage]:
        """What the workflow is to be given once more, for its answer came back."""
        turn, self._turn = self._turn, None
        if turn is None or not turn.came_back(turn.submitted):
            return []
        submitters = self._submitters(turn)
        self._came_back = self._told()
        turn.pass_on(turn.submitted, submitters)
        turn.end()
        self.said = [one for one in self.said if one[0] not in submitters]
        return [self._once_more(name, turn.submitted) for name in submitters]

    def give_in(self, error: BaseException) -> None:
        """There are no iterations left to look at an answer that came back: it stands."""
        self._session.incident("bounce failed", {"why": repr(error)})
        self.abort(error, self._came_back)

    def abort(self, error: BaseException, answer: Any = None) -> None:
        """The workflow has raised, or nobody wants to know how it ends; `answer` stands anyway."""
        if self._is_over:
            return
        self._is_over = True
        session, end = self._session, self._team.end
        if self._turn is not None:  # who waited for the answer was cancelled
            session.let_go(self.answer)
            self._turn.came_back(self.answer)
            return
        self._team.give_up(error)
        mails = self._team.put_away()
        self._let_go(event for mail in mails for event in mail.events)
        for mail in mails:
            turn = session.begin(mail.executor, mail.events)
            turn.fail(error, (end,))
        if self.is_asked:
            self._let_go(self.last_words())
            turn = session.begin(end)
            if answer is None:
                turn.fail(error, submits=True)
            else:
                turn.came_back(turn.submit(answer, bounces=False))

    def _let_go(self, events: Iterable[str]) -> None:
        """Nobody waits for events any more: all of them first, since some wait for others."""
        for event in events:
            self._session.let_go(event)

    def _told(self) -> Any:
        if self.asks:
            return {"$asks": self.asks}
        said = [words for _, words in self.said]
        return said[0] if len(said) == 1 else said

    def _submitters(self, turn: Turn) -> list[str]:
        """Who is asked again: those who ended without a word, or else those who answered."""
        team = self._team
        if self.asks or team.is_lost or not team.has_iterations_left:
            return []
        ended = [event for event in turn.events if event.sender in self.given]
        silent = [event for event in ended if event.type == "notice"]
        names = dict.fromkeys(str(event.sender) for event in silent or ended)
        return [name for name in names if team.inner(name) is not None]

    def _once_more(self, name: str, event: str) -> WorkflowMessage:
        message = replace(self.given[name], source_id=INTERNAL_SOURCE_ID(name), target_id=name)
        return self._team.send_back(event, message)

    def _hand_to_end(self) -> None:
        """What waits for a later run is not waited for in this one, and nothing is called lost."""
        for mail in self._team.put_aside():
            turn = self._session.begin(mail.executor, mail.events)
            for event in mail.events:
                turn.pass_on(event, (self._team.end,))
            turn.end()
        for event in self.lost:
            if not self._session.seats_of(event):
                self._session.redirect(event, (self._team.end,))
