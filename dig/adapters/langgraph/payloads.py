"""What nodes write, as the plain JSON that an event carries."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Command

from dig.adapters import as_payload


def shown(value: Any) -> Any:
    """A state, an update or an input as plain JSON, with messages cut down to what was said."""
    return as_payload(value, _words)


def _words(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return _message(value)
    if isinstance(value, Command):
        told = {"resume": value.resume, "update": value.update, "goto": value.goto or None}
        return {key: one for key, one in told.items() if one is not None}
    return value


def _message(message: BaseMessage) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.type, "content": message.content}
    for key in ("name", "tool_calls", "tool_call_id"):
        if found := getattr(message, key, None):
            said[key] = found
    return said
