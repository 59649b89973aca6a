"""The turn of the running code, for the code of agents and for adapters."""

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
    """The notes of the monitor for the turn of the running code, oldest first.

    Call it inside an agent of a wrapped team; anywhere else there are none.
    """
    turn = current.get()
    return turn.notebook.read() if turn is not None else ()


def notes_about() -> tuple[About, ...]:
    """The content of the notes for the turn of the running code, as data, oldest first."""
    turn = current.get()
    return tuple(turn.notebook.about) if turn is not None else ()


def report_usage(**usage: Any) -> None:
    """Report the usage of a call of a model by the agent of the running code, for the budget.

    Args:
        usage: `input_tokens`, `output_tokens`, and if known `model`, `cached_tokens` (of those that
            were sent) and `cost_usd`.
    """
    turn = current.get()
    if turn is not None:
        turn.spend(usage)


@contextmanager
def waiting(asks: str | None = None) -> Iterator[None]:
    """Mark a block of code as waiting on purpose: for a person, a queue, a build.

    However long the block lasts, its turn is not reported as stalled, nor its team as deadlocked.
    Outside of a wrapped team the block changes nothing.

    Args:
        asks: The question that is waited for, for the trace and the reports; by default none.
    """
    turn = current.get()
    if turn is None:
        yield
        return
    turn.waits(asks, key=(key := object()))
    try:
        yield
    finally:
        turn.resumes(key=key)


def enclosing() -> Iterator[Any]:
    """The turns around the running code, of all sessions, the innermost first."""
    turn = current.get()
    while turn is not None:
        yield turn
        turn = turn.outer


class inside:
    """A `with` block for code of a turn, and for tasks made in the block."""

    # A class, not a generator: one is entered for each call and each item of a stream.

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def __enter__(self) -> None:
        self._turn.outer = current.get()
        self._token = current.set(self._turn)

    def __exit__(self, *raised: object) -> None:
        with suppress(ValueError):  # in another context by now: nothing to restore there
            current.reset(self._token)
