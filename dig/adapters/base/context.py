"""The turn that the running code belongs to, and what that code may ask and say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from dig.monitor.messages import About

from .turn import Turn

current: ContextVar[Turn | None] = ContextVar("dig_current_turn", default=None)
"""The turn that the running code belongs to."""


def notes() -> tuple[str, ...]:
    """The notes of the monitor for the turn that this code belongs to, oldest first.

    Call it inside an agent of a wrapped team; anywhere else there is nothing to tell.
    """
    turn = current.get()
    return turn.notebook.read() if turn is not None else ()


def notes_about() -> tuple[About, ...]:
    """The content of the notes of the turn that this code belongs to, as data, oldest first."""
    turn = current.get()
    return turn.about if turn is not None else ()


@contextmanager
def waiting() -> Iterator[None]:
    """A block of code that waits on purpose: for a person, a queue, a build.

    However long it lasts, the turn that the code belongs to is no stalled one, and its team is in
    no deadlock. Outside of a wrapped team the block changes nothing.
    """
    turn = current.get()
    if turn is None:
        yield
        return
    turn.waits()
    try:
        yield
    finally:
        turn.resumes()


def enclosing() -> Iterator[Any]:
    """The turns that the running code belongs to, of whatever session, the innermost first."""
    turn = current.get()
    while turn is not None:
        yield turn
        turn = turn.outer


class inside:
    """A block of a `with` statement; its code, and the tasks that it makes, belong to a turn."""

    def __init__(self, turn: Turn) -> None:
        """Prepare; nothing is changed yet."""
        self._turn = turn

    def __enter__(self) -> None:
        self._turn.outer = current.get()
        self._token = current.set(self._turn)

    def __exit__(self, *raised: object) -> None:
        with suppress(ValueError):  # in another context by now: nothing to restore there
            current.reset(self._token)
