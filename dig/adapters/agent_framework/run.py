"""A run of a workflow and the end of the run; used inside steps of the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_framework import WorkflowConvergenceException, WorkflowMessage
from agent_framework._workflows._const import INTERNAL_SOURCE_ID

from dig.adapters import base
from dig.errors import BudgetExceeded
from dig.graph.records import Failure

from .handlers import shown
from .team import WorkflowTeam

if TYPE_CHECKING:
    from dig.runtime.spending import Account

DROPPED = base.CalledOffError("the stream was dropped before its end, and another run has begun")
"""Reason in a trace for a run whose caller is gone; it is never raised."""


class WorkflowRun:
    """A run, from the call of `Workflow.run` to the end; used inside steps of the session.

    Attributes:
        has_begun: Whether the run's first step has begun.
        is_asked: Whether something has come from outside.
        inputs: The latest input of each executor.
        outputs: The outputs of executors, in order.
        asks: The questions of executors to a person; the run is over then, and another one goes on.
        stopped: The account of the run, once a budget has stopped it.
        refused: The first event without budget, which the entry executor has in its last turn.
        caller: The turn that has called the workflow, if it is within another one: it asks in
            place of the outside, and gets the answer, which never comes back.
    """

    def __init__(self, team: WorkflowTeam) -> None:
        self.caller = base.current_turn(team.session) if team.is_inner else None
        self.has_begun = False
        self.is_asked = False
        self.inputs: dict[str, WorkflowMessage] = {}
        self.outputs: list[tuple[str, Any]] = []
        self.asks: list[Any] = []
        self.stopped: Account | None = None
        self.refused = ""
        self._before: int | None = None  # the number of outputs before the last turn
        self._team = team
        self._session = team.session
        self._is_over = False
        self._came_back: Any = None  # the answer that did, in words
        self._turn: base.Turn | None = None  # of the end, until its answer is accepted
        self._answer = ""  # of that turn

    @property
    def answer(self) -> str:
        """The submitted answer, until accepted."""
        return self._answer if self._turn is not None else ""

    def ask(self, payload: Any, to: str, turn: base.Turn | None = None) -> str:
        """Make the event of a question from outside to an agent of the workflow.

        Args:
            payload: The question.
            to: The agent.
            turn: A turn of the same problem, which goes on waiting for a person.
        """
        self.is_asked = True
        if self.caller is not None:
            return self.caller.call(payload, to)
        if turn is None:
            return self._session.request(payload, to)
        event = turn.send(payload, to, awaits=False)
        turn.act()
        return event

    def note_pending(self, requests: Mapping[str, Any]) -> None:
        """Note the requests still waiting for a person, of earlier runs too."""
        self.asks = [shown(request.data) for request in requests.values()]
        self._team.call_off(requests)

    def last_round(self) -> list[WorkflowMessage]:
        """The latest input of the entry executor, for its last turn in a stopped run."""
        account, team = self.stopped, self._team
        if account is None or not self.refused or not team.has_iterations_left:
            return []
        name = team.executor(account.entry)
        if team.inner(name) is None or not self._session.hand_back(account):
            return []
        self._before = len(self.outputs)
        message = replace(self.inputs[name], source_id=INTERNAL_SOURCE_ID(name), target_id=name)
        return [team.send_back(self.refused, message)]

    def check_budget(self) -> None:
        """Raise to the caller of a stopped run without an output of the last turn.

        Raises:
            BudgetExceeded: There is none.
        """
        account, before = self.stopped, self._before
        if account is None or self.caller is not None:
            return
        names = [] if before is None else [name for name, _ in self.outputs[before:]]
        if account.entry not in map(self._team.agent, names):
            raise account.exceeded()

    def submit(self) -> None:
        """Submit the outputs of a workflow with nothing left to do.

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
            self._answer = turn.reply(self._payload(), self.caller.address)
        else:
            self._answer = turn.submit(self._payload(), bounces=bool(self._submitters(turn)))

    def next_round(self) -> list[WorkflowMessage]:
        """Messages for another round of the workflow, if the answer came back."""
        turn, self._turn = self._turn, None
        if turn is None or not self._comes_back(turn):
            return []
        submitters = self._submitters(turn)
        self._came_back = self._payload()
        turn.forward(map(self._team.agent, submitters), (self._answer,))
        self.outputs = [output for output in self.outputs if output[0] not in submitters]
        inputs = {name: self.inputs[name] for name in submitters}
        return [
            self._team.send_back(
                self._answer,
                replace(message, source_id=INTERNAL_SOURCE_ID(name), target_id=name),
            )
            for name, message in inputs.items()
        ]

    def _comes_back(self, turn: base.Turn) -> bool:
        """Hand over the released answer, unless the answer comes back."""
        if self.caller is None:
            return turn.was_bounced(self._answer)
        self.caller.receive(self._answer)
        return False

    def give_in(self, error: BaseException) -> None:
        """Let a bounced answer stand, with no iterations left to look at the work again."""
        self._session.guard.incident("bounce failed", {"why": repr(error)})
        self.abort(error, self._came_back)

    def abort(self, error: BaseException, answer: Any = None) -> None:
        """End a run by an error, or without a caller; an `answer` stands anyway."""
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
        is_limit = isinstance(error, WorkflowConvergenceException | BudgetExceeded)
        kind: Failure = "limit" if is_limit else "error"
        if self.is_asked:
            session.release(*self._team.last_words())
            turn = session.begin(end)
            if self.caller is not None:
                self.caller.receive(turn.abandon(error, self.caller.address))
            elif answer is None:
                turn.fail(error, submits=True, kind=kind)
            else:
                turn.was_bounced(turn.submit(answer, bounces=False))

    def _payload(self) -> Any:
        if self.asks:
            return {"$asks": self.asks}
        payloads = [payload for _, payload in self.outputs]
        return payloads[0] if len(payloads) == 1 else payloads

    def _submitters(self, turn: base.Turn) -> list[str]:
        """The executors to ask again: the silent executors, or else all with an answer."""
        team = self._team
        if self.asks or self.stopped or team.has_failed or not team.has_iterations_left:
            return []
        ended = [event for event in turn.events if team.executor(event.sender) in self.inputs]
        silent = [event for event in ended if event.type == "notice"]
        names = dict.fromkeys(team.executor(event.sender) for event in silent or ended)
        return [name for name in names if team.inner(name) is not None]
