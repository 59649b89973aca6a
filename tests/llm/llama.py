"""A server that treats tools, schemas and long replies as llama.cpp does, without a model.

What the model wants to say is a script of its own; the server makes of it what a grammar, a chat
template and a bound leave of it:

- with a schema, or with any JSON object asked for, the grammar lets nothing through but that, so
  that a call of a tool becomes something invented in the shape;
- `tool_choice: required` is accepted and not enforced;
- a template whose calls the server does not know leaves them in the text;
- a reply without an end goes on up to the bound, or else up to the context's end;
- a reply may be withheld for longer than any client waits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.llm.server import Answer, Script, completes

TOKEN = 4
"""The characters of a token."""

ENDLESS = " and so on"
"""What a model repeats that finds no end."""


@dataclass
class Llama:
    """Answers as llama.cpp would, if a model wanted to answer as `wish` does.

    Attributes:
        wish: What the model would say without a grammar, as an answer of the scripted server.
        knows_calls: Whether the server knows the calls of the model's template.
        counts: Whether it names the tokens of a request.
        context: The tokens of a context.
        endless: The requests, counted from 0, whose replies have no end.
        withheld: The requests that get no reply in time.
        invent: Makes the value that a grammar leads to where the model wanted something else.
    """

    wish: Script
    knows_calls: bool = True
    counts: bool = True
    context: int = 4096
    endless: Collection[int] = ()
    withheld: Collection[int] = ()
    invent: Callable[[Any, Mapping[str, Any]], Any] = lambda schema, parts: smallest(schema, parts)
    requests: int = 0

    def __call__(self, request: dict[str, Any]) -> Answer:
        """Answer a request."""
        number, self.requests = self.requests, self.requests + 1
        wanted = self.wish(request)
        if wanted.status != 200:
            return wanted
        message = self._message(request, json.loads(wanted.body)["choices"][0]["message"])
        if number in self.endless:
            message = {"content": json.dumps(message)[:-2] + ENDLESS * self.context}
        answer = self._bounded(request, message)
        return replace(answer, is_withheld=number in self.withheld)

    def _message(self, request: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
        kind = request.get("response_format", {}).get("type")
        if kind == "json_schema":
            schema = request["response_format"]["json_schema"]["schema"]
            parts = schema.get("$defs", {})
            try:
                value = json.loads(wanted["content"] or "")
            except ValueError:
                value = None
            fitted = self.invent(schema, parts) if value is None else fit(value, schema, parts)
            return {"content": json.dumps(fitted)}
        if kind == "json_object":
            return {"content": wanted["content"] or written(wanted) or "{}"}
        has_tools = "tools" in request and request.get("tool_choice") != "none"
        if has_tools and self.knows_calls:
            for i, call in enumerate(wanted.get("tool_calls") or ()):
                call["id"] = f"call-{self.requests}-{i}"
            return dict(wanted)
        return {"content": wanted["content"] or written(wanted)}

    def _bounded(self, request: dict[str, Any], message: dict[str, Any]) -> Answer:
        """The answer with a message, cut off where the bound or the context ends."""
        sent = len(json.dumps(request["messages"])) // TOKEN
        bound = request.get("max_completion_tokens") or request.get("max_tokens") or self.context
        text, finish = message.get("content") or "", "stop"
        if len(text) > bound * TOKEN:
            message, finish = {"content": text[: bound * TOKEN]}, "length"
        elif message.get("tool_calls"):
            finish = "tool_calls"
        received = -(-len(message.get("content") or text) // TOKEN) or 1
        return completes(message, finish, (sent, received) if self.counts else None)


def written(message: Mapping[str, Any]) -> str:
    """The calls in a message as a model writes them whose template the server does not know."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return "\n".join(
        json.dumps({"name": call["name"], "arguments": json.loads(call["arguments"])})
        for call in calls
    )


# --- a grammar ---


def smallest(schema: Any, parts: Mapping[str, Any]) -> Any:
    """The smallest value of a JSON schema, which a model with nothing to say ends with."""
    return fit(None, schema, parts)


_NONSENSE = ["", "s1", "s1", "the the the", "Map_Expert", "{0: 12", "\u202e", "x" * 900]


def babble(seed: int) -> Callable[[Any, Mapping[str, Any]], Any]:
    """Make values that fit a schema and make no sense: a grammar around a random model."""
    random = Random(seed)

    def value(schema: Any, parts: Mapping[str, Any]) -> Any:
        schema = _resolve(schema, parts)
        if "anyOf" in schema:
            return value(random.choice(schema["anyOf"]), parts)
        if "enum" in schema:
            return random.choice(schema["enum"])
        match _type(schema):
            case "object":
                inner = schema.get("properties", {})
                return {key: value(part, parts) for key, part in inner.items()}
            case "array":
                if "prefixItems" in schema:
                    return [value(part, parts) for part in schema["prefixItems"]]
                number = random.randint(0, min(schema.get("maxItems", 4), 4))
                return [value(schema["items"], parts) for _ in range(number)]
            case "integer" | "number":
                return random.choice([-1, 0, 1, 2, 5, 99, 10**9])
            case "boolean":
                return random.random() < 0.5
            case "null":
                return None
        return random.choice(_NONSENSE)

    return value


def fit(value: Any, schema: Any, parts: Mapping[str, Any]) -> Any:
    """The value that a grammar leaves of what a model wants to write.

    Args:
        value: What it wants to write.
        schema: The JSON schema.
        parts: The definitions that the schema refers to.
    """
    schema = _resolve(schema, parts)
    if "anyOf" in schema:
        options = [fit(value, option, parts) for option in schema["anyOf"]]
        return value if value in options else options[0]
    if "enum" in schema:
        return value if value in schema["enum"] else schema["enum"][0]
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [_type(schema)]
    if len(kinds) > 1 and any(_is(value, kind) for kind in kinds):
        return value
    kind = _type(schema)
    if kind == "object":
        given = value if isinstance(value, dict) else {}
        if "properties" not in schema:
            return given
        return {key: fit(given.get(key), part, parts) for key, part in schema["properties"].items()}
    if kind == "array":
        items = value if isinstance(value, list) else []
        if fixed := schema.get("prefixItems"):
            padded = [*items, *[None] * len(fixed)]
            return [fit(item, part, parts) for item, part in zip(padded, fixed, strict=False)]
        return [fit(item, schema["items"], parts) for item in items[: schema.get("maxItems")]]
    return value if _is(value, kind) else _NOTHING[kind]


_TYPES: Mapping[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict,
    "array": list, "null": type(None),
}  # fmt: skip
_NOTHING = {"string": "", "integer": 0, "number": 0, "boolean": False, "null": None}


def _is(value: Any, kind: str) -> bool:
    is_flag = isinstance(value, bool) and kind != "boolean"
    return isinstance(value, _TYPES[kind]) and not is_flag


def _type(schema: Any) -> str:
    kind = schema.get("type", "string")
    return str(kind if isinstance(kind, str) else kind[0])


def _resolve(schema: Any, parts: Mapping[str, Any]) -> Any:
    name = schema.get("$ref", "").rpartition("/")[2]
    return {**parts[name], **{k: v for k, v in schema.items() if k != "$ref"}} if name else schema
