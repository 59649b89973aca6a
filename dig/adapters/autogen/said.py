"""What the participants of a group chat say, and to whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import HandoffMessage, ToolCallRequestEvent

from dig.adapters import as_payload


def payload_of(message: Any) -> Any:
    """A chat message: its text, to whom it hands over, or its type with what it has."""
    content = message.content
    if isinstance(message, HandoffMessage):
        return {"handoff": message.target, "said": content}
    if isinstance(content, str):
        return content
    return {"type": message.type, "content": as_payload(content)}


def task_of(messages: Sequence[Any] | None, team: str) -> Any:
    """What a team is asked; without a task it goes on where it has stopped."""
    if messages is None:
        return {"$resumed": team}
    told = [payload_of(message) for message in messages]
    return told[0] if len(told) == 1 else told


def answer_of(message: Any) -> Any:
    """What a participant's response comes to; that of a team: what was said in it last."""
    result = getattr(message, "result", None)
    if result is None:
        return message.response.chat_message
    return result.messages[-1] if result.messages else None


def listeners(team: Any, message: Any, speakers: list[str]) -> list[str]:
    """Whom a response is for: who is next; in a graph, who comes behind, now or after a join.

    Args:
        team: The team.
        message: The response.
        speakers: Who is next.
    """
    graph = getattr(team, "_graph", None)
    if graph is None or message.name not in graph.nodes:
        return speakers
    said = answer_of(message)
    behind = [
        edge.target
        for edge in graph.nodes[message.name].edges
        if edge.target in speakers
        or (edge.condition_function is None and edge.check_condition(said))
    ]
    return [*dict.fromkeys(behind)] or speakers


def is_silent(message: Any, handoffs: Mapping[str, Any]) -> bool:
    """Whether a handoff only says who is next, in the words that stand for that.

    Args:
        message: The handoff.
        handoffs: Those that the agent can make, by the names of their tools.
    """
    standing = {"", Handoff(target=message.target).message}
    standing.update(one.message for one in handoffs.values())
    return not message.context and message.content.strip() in standing


def dropped(message: Any, handoffs: Mapping[str, Any]) -> list[str]:
    """To whom a response hands over in vain: AutoGen carries out the first handoff only.

    Args:
        message: The response.
        handoffs: Those that the agent can make, by the names of their tools.
    """
    response = getattr(message, "response", None)
    if response is None or not isinstance(response.chat_message, HandoffMessage):
        return []
    return _handoffs_in(response.inner_messages or (), handoffs)[1:]


def _handoffs_in(messages: Iterable[Any], handoffs: Mapping[str, Any]) -> list[str]:
    """To whom the last request for tools wanted to hand over."""
    requests = [one.content for one in messages if isinstance(one, ToolCallRequestEvent)]
    return [handoffs[call.name].target for call in (requests or [()])[-1] if call.name in handoffs]
