"""One run of a workflow, with its end; used inside steps of the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_framework import WorkflowConvergenceException, WorkflowMessage
from agent_framework._workflows._const import INTERNAL_SOURCE_ID

from dig.adapters.base import CalledOffError, Turn, current_turn
from dig.graph.records import Failure

from .messages import shown
from .team import WorkflowTeam

DROPPED = CalledOffError("the stream was dropped before its end, and another run has begun")
"""Reason in a trace for a run whose caller is gone; it is never raised."""


class WorkflowRun:
    """One run, from the call of `Workflow.run` to its end; used inside steps of the session.

    Attributes:
        has_begun: Whether the run's first step has begun.
        is_asked: Whether something has come from outside.
        given: The latest input of each executor.
        said: The outputs of executors, in order.
        asks: The questions of executors to a person; the run is over then, and another one goes on.
        caller: The turn that has called the workflow, if it is within another one: it asks in
            place of the outside, and gets the answer, which never comes back.
    """

    def __init__(self, team: WorkflowTeam) -> None:
        """Begin."""
        self.caller = current_turn(team.session) if team.is_inner else None
        self.has_begun = False
        self.is_asked = False
        self.given: dict[str, WorkflowMessage] = {}
        self.said: list[tuple[str, Any]] = []
        self.asks: list[Any] = []
        self._team = team
        self._session = team.session
        self._is_over = False
        self._came_back: Any = None  # the answer that did, in words
        self._turn: Turn | None = None  # of the end, while it is not known whether it is accepted
        self._answer = ""  # of that turn

    @property
    def answer(self) -> str:
        """The answer that was submitted and has not been accepted yet."""
        return self._answer if self._turn is not None else ""

    def ask(self, payload: Any, to: str) -> str:
        """The event of a question to an agent of this workflow, from outside of it."""
        self.is_asked = True
        if self.caller is not None:
            return self.caller.call(payload, to)
        return self._session.request(payload, to)

    def note_pending(self, requests: Mapping[str, Any]) -> None:
        """Executors wait for these answers from outside, whether they asked in this run or not."""
        self.asks = [shown(request.data) for request in requests.values()]
        self._team.call_off(requests)

    def submit(self) -> None:
        """The workflow has nothing left to do: its end submits what it has come to.

        While turns of executors wait for a person, there is no answer yet.
        """
        self._team.settle_all()
        if not self.is_asked:
            return
        if self._team.waits:
            if self.caller is not None:
                self.caller.receive()
            return
        turn = self._turn = self._session.begin(self._team.end)
        if self.caller is not None:
            self._answer = turn.reply(self._told(), self.caller.address)
        else:
            self._answer = turn.submit(self._told(), bounces=bool(self._submitters(turn)))

    def again(self) -> list[WorkflowMessage]:
        """The input that the workflow is to be given once more, for its answer came back."""
        turn, self._turn = self._turn, None
        if turn is None or not self._comes_back(turn):
            return []
        submitters = self._submitters(turn)
        self._came_back = self._told()
        turn.forward(map(self._team.agent, submitters), (self._answer,))
        self.said = [one for one in self.said if one[0] not in submitters]
        return [self._once_more(name, self._answer) for name in submitters]

    def _comes_back(self, turn: Turn) -> bool:
        """Hand over the answer, which is not held any more, unless it comes back."""
        if self.caller is None:
            return turn.was_bounced(self._answer)
        self.caller.receive(self._answer)
        return False

    def give_in(self, error: BaseException) -> None:
        """There are no iterations left to look at an answer that came back: it stands."""
        self._session.guard.incident("bounce failed", {"why": repr(error)})
        self.abort(error, self._came_back)

    def abort(self, error: BaseException, answer: Any = None) -> None:
        """The workflow has raised, or its caller is gone; an `answer` stands anyway."""
        if self._is_over:
            return
        self._is_over = True
        session, end = self._session, self._team.end
        if self._turn is not None:  # the task that waited for the answer was cancelled
            session.release(self.answer)
            self._comes_back(self._turn)
            return
        self._team.give_up()
        self._team.withdraw(self._team.put_away())
        how: Failure = "limit" if isinstance(error, WorkflowConvergenceException) else "error"
        if self.is_asked:
            session.release(*self._team.last_words())
            turn = session.begin(end)
            if self.caller is not None:
                self.caller.receive(turn.abandon(error, self.caller.address))
            elif answer is None:
                turn.fail(error, submits=True, kind=how)
            else:
                turn.was_bounced(turn.submit(answer, bounces=False))

    def _told(self) -> Any:
        if self.asks:
            return {"$asks": self.asks}
        said = [words for _, words in self.said]
        return said[0] if len(said) == 1 else said

    def _submitters(self, turn: Turn) -> list[str]:
        """The executors that are asked again: the silent ones, or else those that answered."""
        team = self._team
        if self.asks or team.has_failed or not team.has_iterations_left:
            return []
        ended = [event for event in turn.events if team.executor(event.sender) in self.given]
        silent = [event for event in ended if event.type == "notice"]
        names = dict.fromkeys(team.executor(event.sender) for event in silent or ended)
        return [name for name in names if team.inner(name) is not None]

    def _once_more(self, name: str, event: str) -> WorkflowMessage:
        message = replace(self.given[name], source_id=INTERNAL_SOURCE_ID(name), target_id=name)
        return self._team.send_back(event, message)
