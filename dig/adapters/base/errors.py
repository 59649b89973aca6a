"""Errors of turns: which activation raised, which only passes on, and which was called off.

An exception is known again by identity, as long as turns are open: an agent that calls another
and does not catch its error ends with the same exception, with one raised from it, or with a
group that contains it.
"""

from __future__ import annotations

from asyncio import CancelledError  # noqa: TID251  wrapped teams may run without anyio
from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError as FutureCancelledError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from anyio import get_cancelled_exc_class

from dig.graph.records import base_name
from dig.runtime.errors import describe, stack_of

CalledOffError = FutureCancelledError
"""The reason in a trace for turns that were called off; it is never raised."""

MOST_ERRORS = 64
"""The number of exceptions that a session remembers."""

MOST_LINKS = 64
"""The number of exceptions behind one exception that are looked at."""


@dataclass(frozen=True)
class TurnFailure:
    """The end of an activation by an error.

    Attributes:
        error: Type and text of the error, in one line.
        because: The activation of another agent that raised the error; ``None``: this one did.
        cancelled: Whether the activation was called off.
        stack: The stack trace of an error that the activation raised itself.
    """

    error: str
    because: str | None = None
    cancelled: bool = False
    stack: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the record of that end."""
        return {"error": self.error, "because": self.because, "cancelled": self.cancelled}


class RaisedErrors:
    """The latest exceptions of a session, with the activations that raised them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._latest: deque[tuple[BaseException, str, str]] = deque(maxlen=MOST_ERRORS)

    def failure(self, error: BaseException, agent: str) -> TurnFailure:
        """The failure of an activation of an agent that ends with an exception."""
        text = describe(error)
        if is_called_off(error):
            return TurnFailure(text, cancelled=True)
        because = next(self._raised_by_others(error, agent), None)
        return TurnFailure(text, because, stack="" if because else stack_of(error))

    def add(self, error: BaseException, activation: str, agent: str) -> None:
        """Remember that an activation of an agent has raised an exception."""
        self._latest.append((error, activation, agent))

    def forget(self) -> None:
        """No turn is open: no agent can pass an error on any more."""
        self._latest.clear()

    def _raised_by_others(self, error: BaseException, agent: str) -> Iterator[str]:
        for link in links(error):
            for raised, activation, raiser in self._latest:
                if raised is link and base_name(raiser) != base_name(agent):
                    yield activation


def links(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that it was raised from or that its group contains."""
    waiting, seen = [error], 0
    while waiting and seen < MOST_LINKS:
        link = waiting.pop(0)
        seen += 1
        yield link
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions
        before = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if before is not None:
            waiting.append(before)


def is_called_off(error: BaseException) -> bool:
    """Whether an exception says that a turn was called off, and not that it failed."""
    kinds: tuple[type[BaseException], ...] = (
        CancelledError, CalledOffError, GeneratorExit,
    )  # fmt: skip
    with suppress(Exception):  # there is no event loop here
        kinds = (*kinds, get_cancelled_exc_class())
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_called_off, error.exceptions))
    return isinstance(error, kinds)
