"""Notes in the form that nodes read: a message at the end of `messages`, private to one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage

Annotate = Callable[[Any, tuple[str, ...]], Any]
"""Puts notes into what a node is given: `(state, notes) -> state`, a copy; ``None``: cannot."""

PREFIX = "dig-note-"
"""Ids of messages that carry notes begin so."""


def as_messages(state: Any, notes: Sequence[str]) -> Any:
    """A copy of a state whose `messages` end with the notes; ``None``, if it has no messages.

    A note is a message of a user called `monitor`. It is not the system's: it quotes what agents
    have said, and many models refuse a system message that is not the first.
    """
    more = [HumanMessage(note, name="monitor", id=f"{PREFIX}{uuid4()}") for note in notes]
    if isinstance(state, Mapping) and isinstance(state.get("messages"), list):
        return {**state, "messages": [*state["messages"], *more]}
    if isinstance(state, list) and all(isinstance(one, BaseMessage) for one in state):
        return [*state, *more]
    messages = getattr(state, "messages", None)
    if isinstance(messages, list):
        if hasattr(type(state), "model_copy"):
            return state.model_copy(update={"messages": [*messages, *more]})
        if is_dataclass(state) and not isinstance(state, type):
            return replace(state, messages=[*messages, *more])
    return None


def without_notes(value: Any) -> Any:
    """A write without the notes in it: a node that returns all of its messages returns them too."""
    if isinstance(value, list) and any(map(_is_note, value)):
        return [one for one in value if not _is_note(one)]
    return value


def _is_note(value: Any) -> bool:
    return isinstance(value, BaseMessage) and str(value.id).startswith(PREFIX)
