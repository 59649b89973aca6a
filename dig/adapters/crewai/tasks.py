"""The tasks of a kickoff: each is a call of an agent by the crew."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from crewai.task import Task

from dig.adapters.base import NOTE, Call, HookedCall, Session, current, current_turn
from dig.errors import BudgetStop

CREW, STEP = "__crew__", "__task {}__"
"""The crew itself, at its first and at later tasks; its turns count for no budget."""


class Work:
    """A piece of work of an agent; if the answer comes back, the work begins anew.

    Attributes:
        subject: The task, or the messages without a crew.
        answer: The answer of the latest attempt.
        is_told: Whether the agent has had the note of the budget.
    """

    def __init__(self, subject: Any) -> None:
        self.subject, self.answer = subject, None
        self.is_told = False
        self._shown = 0

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Mark a block of code as an attempt; the conversation begins without notes."""
        self._shown = 0
        token = at_work.set(self)
        try:
            yield
        finally:
            at_work.reset(token)

    def news(self, notes: tuple[str, ...]) -> str:
        """The text for the conversation about new notes; empty: there are none."""
        fresh = notes[self._shown :]
        parts = [NOTE.format(note) for note in fresh]
        if fresh and self._shown == 0 and self.answer is not None:
            parts.insert(0, f"Your previous answer:\n{self.answer}")
        self._shown = len(notes)
        return "\n\n".join(parts)


at_work: ContextVar[Work | None] = ContextVar("dig_crewai_work", default=None)
"""The work of the running code."""


class Kickoff:
    """A kickoff of a crew.

    Attributes:
        call: The call of the crew.
        output: The latest output of a task.
        is_over: Whether the crew has answered at a limit of the budget, so that no task begins.
    """

    def __init__(self, session: Session, crew: Any, payload: Any) -> None:
        """Report the request.

        Args:
            session: The session of the team.
            crew: The crew.
            payload: The inputs, as plain JSON.
        """
        self._crew, self._is_entry = crew, current_turn(session) is None
        self._step = 0  # the place of the latest task
        self.call = HookedCall(session, CREW, payload, may_bounce=False)
        self.output: Any = None
        self.is_over = False

    def is_last(self, task: Task) -> bool:
        """Whether a task's agent answers the request: nothing can change the answer any more."""
        is_checked = bool(task.guardrail or task.guardrails)
        return self._is_entry and task is self._crew.tasks[-1] and not is_checked

    def go_to(self, task: Task) -> None:
        """Go on with the crew's own step for a task; parallel tasks share the step of the first."""
        place = next(place for place, other in enumerate(self._crew.tasks) if other is task)
        if place > self._step:
            self._step = place
            self.call.guard.session.next_step(self.call.turn, STEP.format(place + 1))

    @property
    def is_at_limit(self) -> bool:
        """Whether the budget is used up, and there is an output to hand back."""
        guard, events = self.call.guard, [event.id for event in self.call.turn.events]
        if guard.session.budget is None or self.output is None:
            return False
        return guard.run(guard.session.refuses, *events, default=None) is not None

    def hand_back(self) -> Any:
        """Answer with the latest output, at a limit of the budget."""
        if not self.is_over:
            self.is_over = True
            self.call.answer_in_thread(self.output)
        return self.output


class CrewTaskCall(Call):
    """The call of an agent with a task, by the crew or by another agent."""

    def __init__(
        self, session: Session, agent: str, task: Task, context: str | None,
        kickoff: Kickoff | None,
    ) -> None:  # fmt: skip
        """Report the call.

        Args:
            session: The session of the team.
            agent: The agent.
            task: The task.
            context: The outputs of other tasks, and whatever else the agent is given.
            kickoff: The kickoff whose task it is; ``None``: another agent has made the task.
        """
        self._task, self._work, self._kickoff = task, Work(task), kickoff
        crew = kickoff.call.turn if kickoff is not None else None
        self._crew = crew if crew is not None and crew.is_open else None
        self._is_last = kickoff is not None and kickoff.is_last(task) and not kickoff.is_at_limit
        payload = {"task": task.description, "context": context} if context else task.description
        # By hand: the context is lost in threads.
        super().__init__(session, agent, payload, caller=self._crew)

    async def work(self, original: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Have the agent do the task, and hand over the output.

        Args:
            original: The agent's own `aexecute_task`.
            args: The arguments.
        """

        async def attempt(agent: str, notes: tuple[str, ...]) -> Any:
            with self._attempt():
                self._work.answer = await original(*args)
            return self._work.answer

        try:
            return self._keep(await self.run(attempt))
        except BudgetStop as error:
            return self._without_budget(error)

    def work_now(self, original: Callable[..., Any], *args: Any) -> Any:
        """Do what `work` does in the calling thread; `original`: the agent's `execute_task`."""

        def attempt(agent: str, notes: tuple[str, ...]) -> Any:
            with self._attempt():
                self._work.answer = original(*args)
            return self._work.answer

        try:
            return self._keep(self.run_now(attempt))
        except BudgetStop as error:
            return self._without_budget(error)

    def _send(self) -> tuple[str, str]:
        turn = self._caller
        if self._kickoff is not None:
            self._kickoff.go_to(self._task)
        if not self._is_last or turn is None:
            return super()._send()
        # The crew has nothing more to do, so the last agent answers in its place.
        instance = self._session.instances.reserve(self._agent)
        events = turn.hand_over(instance, self._payload).events
        self._caller = None
        return events[0] if events else "", instance

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        turn = current.get()
        if self._crew is not None and turn is not None:  # the crew itself reads nothing
            turn.notebook.inherit([self._crew.notebook])
            self._crew.notebook.read()
        with self._work.attempt():
            yield

    def _keep(self, output: Any) -> Any:
        if self._kickoff is not None:
            self._kickoff.output = output
        return output

    def _without_budget(self, error: BudgetStop) -> Any:
        """The note for the asking agent, or the output for the crew, at a limit of the budget.

        Raises:
            BudgetExceeded: The crew has no output to hand back.
            BudgetStop: The asking agent has had the note already.
        """
        account = self.stopped_by(error)
        if account is None:
            raise error
        if self._kickoff is not None:
            if self._kickoff.output is None:
                raise account.exceeded() from error
            return self._kickoff.hand_back()
        asking = at_work.get()
        if asking is None or asking.is_told:
            raise error
        asking.is_told = True
        return account.note
