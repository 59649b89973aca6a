"""Which turn the running code belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .turn import Turn

current: ContextVar[Turn | None] = ContextVar("dig_current_turn", default=None)
"""The turn that the running code belongs to."""


def notes() -> tuple[str, ...]:
    """What the monitor has told the turn that this code belongs to, oldest first.

    Call it inside an agent of a wrapped team; anywhere else there is nothing to tell.
    """
    turn = current.get()
    return turn.notes if turn is not None else ()


@contextmanager
def inside(turn: Turn) -> Iterator[None]:
    """While a block lasts, the code in it, and the tasks that it makes, belong to a turn."""
    turn.outer = current.get()
    token = current.set(turn)
    try:
        yield
    finally:
        with suppress(ValueError):  # in another context by now: nothing to restore there
            current.reset(token)
