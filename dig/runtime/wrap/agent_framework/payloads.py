"""What executors pass around, as the plain JSON that an event carries; and what hands on."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from agent_framework import (
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    AgentResponseUpdate,
    Message,
)

from dig.runtime.wrap import as_payload


def shown(value: Any) -> Any:
    """A message or an output as plain JSON; of an agent what it said, not all it has read."""
    if isinstance(value, AgentExecutorResponse):
        return shown(value.agent_response)
    if isinstance(value, AgentExecutorRequest):
        return {"messages": shown(value.messages), "should_respond": value.should_respond}
    if isinstance(value, AgentResponse):
        said = [shown(one) for one in value.messages]
        return said[0] if len(said) == 1 else said
    if isinstance(value, Message):
        return _message(value)
    if isinstance(value, AgentResponseUpdate):
        return value.text
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    if isinstance(value, dict):
        return {str(key): shown(one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: shown(getattr(value, part.name, None)) for part in fields(value)}
    return as_payload(value)


def answer(outputs: list[Any]) -> Any:
    """What an executor has yielded, as one payload; the pieces of a stream are joined."""
    if outputs and all(isinstance(one, AgentResponseUpdate) for one in outputs):
        return "".join(one.text for one in outputs)
    told = [shown(one) for one in outputs]
    return told[0] if len(told) == 1 else told


def is_notice(data: Any) -> bool:
    """Whether a message is only to be kept in mind, and asks for nothing."""
    return isinstance(data, AgentExecutorRequest) and not data.should_respond


def is_handoff(given: Any, sent: Any) -> bool:
    """Whether an executor that sends this on has only handed on what it was given.

    It has, if it sends the same thing, asks the next agent without a word, or hands over the
    response of an agent that said nothing.
    """
    if isinstance(sent, AgentExecutorRequest):
        return sent.should_respond and not sent.messages
    if isinstance(sent, AgentExecutorResponse):
        return not sent.agent_response.text.strip()
    return sent is given or (type(sent) is type(given) and bool(shown(sent) == shown(given)))


def _message(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"role": str(message.role), "text": message.text}
    if message.author_name:
        said["name"] = message.author_name
    calls = [one for one in message.contents if one.type == "function_call"]
    if calls:
        said["calls"] = [{"name": c.name, "arguments": as_payload(c.arguments)} for c in calls]
    return said
