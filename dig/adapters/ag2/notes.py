"""Middleware of an agent's turn: notes for its model, and whether it waits for a person.

Notes have the form that a model reads: parts of their own beside the agent's message. What comes
while a turn goes on is shown with the next call of the model, after what was there at that moment.
Notes are for one agent's eyes: neither its history nor the channel has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ag2.events import ModelRequest, TextInput
from ag2.middleware import BaseMiddleware

NOTE = "[monitor] {}"

Read = Callable[[], tuple[str, ...]]
"""Gives the notes of a turn, oldest first; it grows."""


def as_parts(notes: Sequence[str]) -> list[str]:
    """Notes as parts of a message."""
    return [NOTE.format(note) for note in notes]


def showing(read: Read) -> Callable[[Any, Any], Showing]:
    """Makes middleware that shows the notes that come from now on."""
    known = len(read())

    def make(event: Any, context: Any) -> Showing:
        return Showing(event, context, read, known)

    return make


def waiting(waits: Callable[[], None]) -> Callable[[Any, Any], Waiting]:
    """Makes middleware that calls `waits` when the turn asks a person (`hitl_hook`)."""

    def make(event: Any, context: Any) -> Waiting:
        return Waiting(event, context, waits)

    return make


class Waiting(BaseMiddleware):  # type: ignore[misc]
    """Says that a turn waits for a person."""

    def __init__(self, event: Any, context: Any, waits: Callable[[], None]) -> None:
        """Begin with nothing asked."""
        super().__init__(event, context)
        self._waits = waits

    async def on_human_input(self, call_next: Any, event: Any, context: Any) -> Any:
        """A person is asked."""
        self._waits()
        return await call_next(event, context)


class Showing(BaseMiddleware):  # type: ignore[misc]
    """Puts notes before the model's eyes, where they have come in."""

    def __init__(self, event: Any, context: Any, read: Read, known: int) -> None:
        """Begin with `known` notes shown already."""
        super().__init__(event, context)
        self._read = read
        self._known = known
        self._shown: list[tuple[int, Any]] = []  # after how many events, the note

    async def on_llm_call(self, call_next: Any, events: Sequence[Any], context: Any) -> Any:
        """The model is called."""
        for note in as_parts(self._read()[self._known :]):
            self._shown.append((len(events), ModelRequest([TextInput(note)])))
            self._known += 1
        if not self._shown:
            return await call_next(events, context)
        told = list(events)
        for place, note in reversed(self._shown):
            told.insert(place, note)
        return await call_next(told, context)
