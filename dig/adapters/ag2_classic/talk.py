"""What agents say: messages as payloads, and those that only say who is next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig.adapters import as_payload

BY_CODE = "[Handing off to "
"""What AG2 has an agent say that hands over because of a condition, without asking its model."""


def as_message(reply: Any, name: str) -> dict[str, Any]:
    """A reply, as whom it is sent to will look at it."""
    said = dict(reply) if issubclass(type(reply), Mapping) else {"content": reply}
    return {"role": "user", "name": name, **said}


def words(message: Any) -> Any:
    """What a message says, without what only says who says it: a text, if it is nothing else.

    It never raises, whatever an agent has made its reply of.
    """
    told = as_payload(message)
    if not isinstance(told, dict) or not issubclass(type(message), Mapping):
        return told
    said = {key: value for key, value in told.items() if key not in ("role", "name")}
    return said["content"] if said.keys() == {"content"} else said


def handoffs(message: Mapping[str, Any], agent: Any) -> list[Any]:
    """The calls by which an agent hands over in a message; AG2 carries out the last one."""
    conditions = agent.handoffs.llm_conditions
    tools = {condition.llm_function_name for condition in conditions}
    return [call for call in _calls(message) if _name(call) in tools]


def is_handoff(message: Mapping[str, Any], agent: Any) -> bool:
    """Whether an agent only says who is next."""
    content, calls = message.get("content"), _calls(message)
    if calls:
        return not content and len(handoffs(message, agent)) == len(calls) == 1
    return isinstance(content, str) and content.startswith(BY_CODE)


def _calls(message: Mapping[str, Any]) -> list[Any]:
    calls: Any = message.get("tool_calls")
    # Not by `isinstance`: a proxy may raise when it is asked of what class it is.
    return list(calls) if issubclass(type(calls), list) else []


def _name(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""
