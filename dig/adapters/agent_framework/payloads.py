"""What executors pass around, as the plain JSON that an event carries; and what hands on."""

from __future__ import annotations

from typing import Any

from agent_framework import (
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    AgentResponseUpdate,
    Message,
)

from dig.adapters import as_payload


def shown(value: Any) -> Any:
    """A message or an output as plain JSON; of an agent what it said, not all it has read."""
    return as_payload(value, _words)


def answer(outputs: list[Any]) -> Any:
    """What an executor has yielded, as one payload; the pieces of a stream are joined."""
    if outputs and all(isinstance(one, AgentResponseUpdate) for one in outputs):
        return "".join(one.text for one in outputs)
    told = [shown(one) for one in outputs]
    return told[0] if len(told) == 1 else told


def is_notice(data: Any) -> bool:
    """Whether a message is only to be kept in mind, and asks for nothing."""
    # Its type alone is looked at: a proxy may raise when it is asked of what class it is.
    return issubclass(type(data), AgentExecutorRequest) and not data.should_respond


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


def _words(value: Any) -> Any:
    if isinstance(value, AgentExecutorResponse):
        return value.agent_response
    if isinstance(value, AgentExecutorRequest):
        return {"messages": value.messages, "should_respond": value.should_respond}
    if isinstance(value, AgentResponse):
        return value.messages[0] if len(value.messages) == 1 else [*value.messages]
    if isinstance(value, Message):
        return _message(value)
    if isinstance(value, AgentResponseUpdate):
        return value.text
    return value


def _message(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"role": str(message.role), "text": message.text}
    if message.author_name:
        said["name"] = message.author_name
    calls = [one for one in message.contents if one.type == "function_call"]
    if calls:
        said["calls"] = [{"name": c.name, "arguments": c.arguments} for c in calls]
    return said
