"""The bus's tasks for agents and questions, and guarded calls of code of others."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread

from dig.errors import PART_ERRORS, DigError, SettingsError
from dig.monitor.messages import Answered, Output, Proposed, Started

if TYPE_CHECKING:
    from .agents import Agent

_T = TypeVar("_T")

ActivationContext = Callable[[Started], AbstractContextManager[object]]
"""Makes what is entered while an agent acts: a trace context that becomes current, for instance."""


class AgentTask:
    """One agent from join to leave: the mailbox, and the scope of the task.

    Attributes:
        name: The agent's name.
        agent: The agent.
        mail: Is set when there is mail; the task replaces it.
        scope: Ends the task.
    """

    def __init__(self, name: str, agent: Agent) -> None:
        """Begin without mail."""
        self.name = name
        self.agent = agent
        self.mail = anyio.Event()
        self.scope = anyio.CancelScope()


class Question:
    """A waiting call of `Bus.ask`: settled by an answer, a failure, or the end of the run."""

    def __init__(self) -> None:
        """Begin without an answer."""
        self.settled = anyio.Event()
        self.answered = False
        self.answer: Any = None
        self.failure: DigError = SettingsError("the run ended before the answer came")

    def fail(self, failure: DigError) -> None:
        """End the call with a failure."""
        self.failure = failure
        self.settled.set()


def settle(questions: dict[str, Question], answered: Answered) -> None:
    """Give an answer to the waiting questions."""
    for event in answered.problems:
        question = questions.pop(event, None)
        if question is not None:
            question.answered = True
            question.answer = answered.payload
            question.settled.set()


def as_problem(problem: Any, to: Sequence[str], agents: Iterable[str]) -> Output:
    """Make the event of a problem from outside.

    Args:
        problem: Its payload, or an `Output` that says everything about it.
        to: Its recipients; empty: the first agent.
        agents: The agents that are present.

    Raises:
        SettingsError: `to` is no list of names.
    """
    if isinstance(problem, Output):
        return problem
    if isinstance(to, str):
        raise SettingsError(f"`to` is a list of agents' names, such as [{to!r}]")
    return Output(problem, tuple(to) or tuple(agents)[:1], "problem")


@contextmanager
def activation_context(
    contexts: Sequence[ActivationContext], started: Started, report: Callable[[str, str], None]
) -> Iterator[None]:
    """Enter all contexts around an activation, and leave them in the reverse order.

    Args:
        contexts: Each makes a context manager; one that raises is not entered, or has been left.
        started: The activation.
        report: Is told which one failed, and how: an observer must not stop a team.
    """

    def report_failure(observer: object, error: BaseException) -> None:
        name = getattr(observer, "__qualname__", type(observer).__name__)
        report(f"around {name}", f"raised {error!r}")

    def leave(scope: AbstractContextManager[object], *details: Any) -> None:
        try:
            scope.__exit__(*details)
        except PART_ERRORS as error:
            report_failure(scope, error)

    with ExitStack() as entered:
        for context in contexts:
            try:
                scope = context(started)
                scope.__enter__()
            except PART_ERRORS as error:
                report_failure(context, error)
            else:
                # Not the scope itself: what it raises on leaving must not replace the agent's
                # error.
                entered.push(partial(leave, scope))
        yield


async def ask_person(
    approve: Callable[[Proposed], bool | Awaitable[bool]], proposed: Proposed
) -> tuple[bool, str | None]:
    """Ask a person about healing; a plain function is called in a thread.

    Returns:
        Whether the finding is to be healed, and ``None``; or what went wrong.
    """

    async def ask() -> bool:
        is_async = any(map(iscoroutinefunction, (approve, type(approve).__call__)))
        if is_async:
            answer = approve(proposed)
        else:  # a plain function may block for minutes
            answer = await anyio.to_thread.run_sync(approve, proposed, abandon_on_cancel=True)
        heal = await answer if isawaitable(answer) else answer
        if not isinstance(heal, bool):
            raise TypeError(f"{heal!r:.60} is neither True nor False")
        return heal

    heal, raised = await attempt(ask)
    return bool(heal), f"raised {raised!r}" if raised else None


async def attempt(
    work: Callable[[], Awaitable[_T]],
    errors: type[Exception] | tuple[type[BaseException], ...] = PART_ERRORS,
) -> tuple[_T | None, BaseException | None]:
    """Call code that must not end the team.

    Args:
        work: Is called and awaited.
        errors: What does not end the team; `sys.exit` in an agent does.

    Returns:
        What came of it, and ``None``; or ``None``, and what it raised.
    """
    try:
        return await work(), None
    except errors as error:
        return None, error
    except anyio.get_cancelled_exc_class() as error:
        # If this task is not cancelled, `work` awaited something else that was cancelled.
        if anyio.current_effective_deadline() == -math.inf:
            raise
        return None, error
