"""Errors of turns: raised by the activation itself, passed on, or called off.

Exceptions are compared by identity, as long as turns are open: an agent that calls another agent
and does not catch its error ends with the same exception, with an exception raised from it, or
with a group that contains it.
"""

from __future__ import annotations

from asyncio import CancelledError, Task, current_task  # noqa: TID251  teams may lack anyio
from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError as FutureCancelledError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from anyio import get_cancelled_exc_class

from dig.errors import BudgetExceeded, BudgetStop
from dig.graph.records import base_name
from dig.runtime.agent_errors import describe, stack_of

CalledOffError = FutureCancelledError
"""The recorded error of turns that were called off; never raised."""

MOST_ERRORS = 64
"""The number of exceptions that a session remembers."""

MOST_LINKS = 64
"""The number of exceptions behind one exception to look at; chains may be circular."""


@dataclass(frozen=True)
class TurnFailure:
    """The end of an activation by an error.

    Attributes:
        error: Type and text of the error, in one line.
        because: The activation of another agent that raised the error; ``None``: this one did.
        cancelled: Whether the activation was called off.
        stack: The stack trace of an error of the activation's own.
    """

    error: str
    because: str | None = None
    cancelled: bool = False
    stack: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the record of the end."""
        return {"error": self.error, "because": self.because, "cancelled": self.cancelled}


class RaisedErrors:
    """The latest exceptions of a session, each with the raising activation."""

    def __init__(self) -> None:
        self._latest: deque[tuple[BaseException, str, str]] = deque(maxlen=MOST_ERRORS)

    def failure(self, error: BaseException, agent: str) -> TurnFailure:
        """Describe the end of an agent's activation by an exception."""
        text = describe(error)
        if is_called_off(error):
            return TurnFailure(text, cancelled=True)
        raisers = (
            activation
            for link in links(error)
            for raised, activation, raiser in self._latest
            if raised is link and base_name(raiser) != base_name(agent)
        )
        because = next(raisers, None)
        return TurnFailure(text, because, stack="" if because else stack_of(error))

    def add(self, error: BaseException, activation: str, agent: str) -> None:
        """Remember the exception of an agent's activation."""
        self._latest.append((error, activation, agent))

    def add_copy(self, error: BaseException, original: BaseException) -> None:
        """Remember an exception that a framework has made of another one on its way."""
        chain = [*links(original)]
        origins = [it for it in self._latest if any(it[0] is link for link in chain)]
        self._latest.extend((error, activation, agent) for _, activation, agent in origins[-1:])

    def forget(self) -> None:
        """Forget all exceptions; for moments without any open turn."""
        self._latest.clear()


def links(error: BaseException) -> Iterator[BaseException]:
    """An exception, its causes, and the members of groups, nearest first."""
    waiting, count = [error], 0
    while waiting and count < MOST_LINKS:
        link = waiting.pop(0)
        count += 1
        yield link
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions
        before = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if before is not None:
            waiting.append(before)


def make_stop() -> BudgetStop:
    """Make the stop of a call, without a traceback in the log for a task left alone."""
    with suppress(RuntimeError):  # there is no loop of asyncio here
        if (task := current_task()) is not None:
            task.add_done_callback(_retrieve_stop)
    return BudgetStop()


def _retrieve_stop(task: Task[Any]) -> None:
    # To ask for the exception is to retrieve it, and another one must stay for the log.
    if isinstance(getattr(task, "_exception", None), BudgetStop):
        task.exception()


def is_stop(error: BaseException) -> bool:
    """Whether an exception has come of `BudgetStop`."""
    return any(isinstance(link, BudgetStop) for link in links(error))


def is_called_off(error: BaseException) -> bool:
    """Whether an exception means the end of a turn by its caller, and no failure."""
    kinds: tuple[type[BaseException], ...] = (
        CancelledError, CalledOffError, GeneratorExit, BudgetStop, BudgetExceeded,
    )  # fmt: skip
    with suppress(Exception):  # there is no event loop here
        kinds = (*kinds, get_cancelled_exc_class())
    waiting = [error]
    while waiting:  # without recursion: a group of groups may be deeper than Python's stack
        member = waiting.pop()
        if isinstance(member, BaseExceptionGroup):
            waiting += member.exceptions
        elif not isinstance(member, kinds):
            return False
    return True
