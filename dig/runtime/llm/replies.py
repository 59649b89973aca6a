"""Requests to a model's server, and the replies.

An answer is read as strictly as needed and not more: servers that speak the protocol differ in
what they leave out, so only what is used here is asked for. Everything in a reply is untrusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError

from dig._util.text import one_line
from dig.errors import ModelError

from .sdk import openai
from .settings import JsonMode

M = TypeVar("M", bound=BaseModel)

MOST_COMPLAINTS, MOST_IN_COMPLAINT = 20, 2_000
_LEFT_OUT = ("default", "title")
_THOUGHT = "</think>"
"""Ends the thoughts that some models put before a reply."""

SHAPE = "Reply with one JSON object that fits this JSON schema, and nothing else:\n"
SHAPE_OR_CALL = f"Unless you call a tool, r{SHAPE[1:]}"


class Function(BaseModel):
    """A wanted tool, and the arguments as JSON text."""

    name: str
    arguments: str = ""


class ToolCall(BaseModel):
    """A tool call."""

    id: str = ""
    function: Function


class ModelMessage(BaseModel):
    """The message of the model."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None

    def echo(self) -> dict[str, Any]:
        """The message to send back, when the conversation goes on."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content or ""}
        if self.tool_calls:
            message["content"] = self.content
            calls = [{"type": "function", **call.model_dump()} for call in self.tool_calls]
            message["tool_calls"] = calls
        return message


class Choice(BaseModel):
    """One of several answers; the first alone is used."""

    message: ModelMessage
    finish_reason: str | None = None


class Tokens(BaseModel):
    """The number of tokens of a request."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(default=0, ge=0)


class Completion(BaseModel):
    """The body of a reply."""

    choices: list[Choice] = Field(min_length=1)
    usage: Tokens | None = None

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Tokens sent and received, if the server says so."""
        return (self.usage.prompt_tokens, self.usage.completion_tokens) if self.usage else None

    def first_message(self) -> ModelMessage:
        """The message of the first choice.

        Raises:
            ModelError: The model refused, or was stopped before its end.
        """
        choice = self.choices[0]
        if choice.message.refusal:
            raise ModelError(f"the model refused: {one_line(choice.message.refusal)}")
        if choice.finish_reason == "length":
            raise ModelError("the model's reply was cut off at its length limit (--max-reply)")
        if choice.finish_reason == "content_filter":
            raise ModelError("the model's reply was withheld by a content filter")
        return choice.message


@dataclass(frozen=True)
class Reply(Generic[M]):
    """The answer of a model.

    Attributes:
        parsed: Its answer; ``None`` if it calls tools instead.
        calls: The tool calls that it asks for.
        message: The model's message, to be sent back before the results of the calls.
        usage: The use of all requests for this reply: `model_calls`, `input_tokens`, ...
    """

    parsed: M | None
    calls: tuple[ToolCall, ...] = ()
    message: dict[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)


def parse(content: str | None, schema: type[M]) -> M:
    """Parse the first JSON object in a model's text, after the model's thoughts.

    Args:
        content: The text.
        schema: The shape that was asked for. The object must have one of its fields.

    Raises:
        ValueError: The text does not fit; the message says where and why, for the model to read.
    """
    if not content or not content.strip():
        raise ValueError("the reply is empty")
    text = _without_thoughts(content)
    for value, start, end in _objects(text):
        if value and not value.keys() & schema.model_fields.keys():
            raise ValueError(f"the object has none of the fields {', '.join(schema.model_fields)}")
        text = text[start:end]
        break
    try:
        return schema.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(complaints(error)) from None


def written_calls(content: str | None, names: Collection[str]) -> list[ToolCall]:
    """The tool calls that a model wrote down as text, alone, in tags or in a fence.

    The first object of the text decides: a call in a payload of a decision is no call.

    Args:
        content: The text.
        names: The names of the tools.
    """
    calls: list[ToolCall] = []
    for value, _, _ in _objects(_without_thoughts(content or "")):
        arguments = value.get("arguments", value.get("parameters"))
        name = value.get("name", value.get("tool"))
        if not isinstance(name, str) or name not in names or arguments is None:
            break
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = Function(name=name, arguments=text)
        calls.append(ToolCall(id=f"written-{len(calls)}", function=function))
    return calls


def _without_thoughts(text: str) -> str:
    # A reply that is an object from its first character on may quote the mark in a payload.
    return text if text.lstrip().startswith("{") else text.rpartition(_THOUGHT)[2]


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """The JSON objects of a text with their bounds, up to the first brace that begins none."""
    decoder, end = json.JSONDecoder(), 0
    while (start := text.find("{", end)) >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        yield value, start, end


def complaints(error: ValidationError) -> str:
    """The mistakes in some JSON, place by place."""
    mistakes = [
        f"{'.'.join(map(str, mistake['loc'])) or 'the whole'}: {mistake['msg']}"
        for mistake in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return one_line("; ".join(mistakes[:MOST_COMPLAINTS]), MOST_IN_COMPLAINT)


def bare_schema(schema: Any) -> Any:
    """A copy of a JSON schema without defaults, which strict mode refuses, and without titles."""
    if isinstance(schema, list):
        return [bare_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: bare_schema(part) for key, part in schema.items() if key not in _LEFT_OUT}
    # Here the keys are names of a user's, which may be those words.
    named = {key: schema[key] for key in ("properties", "$defs") if key in schema}
    return copy | {k: {n: bare_schema(v) for n, v in parts.items()} for k, parts in named.items()}


def strict_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a shape for OpenAI's strict mode: it requires every field.

    A field with a default may still be missing in a reply: not every server is strict.
    """
    function: Any = openai.pydantic_function_tool(schema, name=schema.__name__)["function"]
    strict: dict[str, Any] = bare_schema(function["parameters"])
    return strict


Narrow = Callable[[dict[str, Any]], None]
"""Restricts a JSON schema, in place, to what one request allows."""


def request_parts(
    mode: JsonMode,
    schema: type[BaseModel],
    messages: Sequence[Any],
    tools: Sequence[Any],
    narrow: Narrow | None = None,
) -> dict[str, Any]:
    """The parts of a request that depend on the JSON mode.

    Args:
        mode: `strict`: the JSON schema, in strict mode, also for tools. `object`: any JSON object,
            with the schema in the instructions. `text`: the schema in the instructions alone.
        schema: The shape.
        messages: The conversation so far.
        tools: The tools that the model may call, as a `Toolbox` describes them.
        narrow: Restricts the schema of the mode `strict`. Instructions have it as it is, so that
            they stay the same from request to request, and servers need not read them again.
    """
    if mode == "strict":
        strict = strict_schema(schema)
        if narrow is not None:
            narrow(strict)
        wanted = {"name": schema.__name__, "strict": True, "schema": strict}
        response_format = {"type": "json_schema", "json_schema": wanted}
        return {"messages": list(messages), "tools": tools, "response_format": response_format}
    instruction = (SHAPE_OR_CALL if tools else SHAPE) + json.dumps(schema.model_json_schema())
    request: dict[str, Any] = {
        "messages": with_instruction(messages, instruction),
        "tools": [
            {**tool, "function": {k: v for k, v in tool["function"].items() if k != "strict"}}
            for tool in tools
        ],
    }
    return request | ({"response_format": {"type": "json_object"}} if mode == "object" else {})


def with_instruction(messages: Sequence[Any], text: str) -> list[Any]:
    """Add a text to the end of the system message, or such a message."""
    if messages and messages[0]["role"] == "system":
        system = {"role": "system", "content": f"{messages[0]['content']}\n\n{text}"}
        return [system, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]
