"""Requests to a model's server, and the replies.

An answer is read as strictly as needed and not more: servers that speak the protocol differ in
what they leave out, so only what is used here is asked for. Everything in a reply is untrusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import WithDefaultSchema

from dig._util.text import one_line
from dig.errors import ModelError

from .settings import JsonMode

M = TypeVar("M", bound=BaseModel)

_FENCE = "```"
MOST_COMPLAINTS = 5
_THOUGHT = "</think>"
"""Ends the thoughts that some models put before a reply."""

SHAPE = """\
Unless you call a tool, reply with one JSON object that fits this JSON schema, and nothing else:
"""


class Function(BaseModel):
    """A wanted tool, and the arguments as JSON text."""

    name: str
    arguments: str = ""


class ToolCall(BaseModel):
    """A tool call."""

    id: str
    function: Function


class ModelMessage(BaseModel):
    """The message of the model."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None

    def echo(self) -> dict[str, Any]:
        """The message to send back, when the conversation goes on."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.tool_calls:
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


def parse(content: str | None, schema: type[M], mode: JsonMode = "strict") -> M:
    """Parse a model's text as a given shape, without a fence of Markdown around the text.

    Args:
        content: The text.
        schema: The shape that was asked for.
        mode: The way the shape was asked for; without a strict schema the first JSON object in the
            text is taken, and must have a field of the schema.

    Raises:
        ValueError: The text does not fit; the message says where and why, for the model to read.
    """
    if not content or not content.strip():
        raise ValueError("the reply is empty")
    text = _strip_fence(content)
    try:
        return schema.model_validate_json(text if mode == "strict" else _first_object(text, schema))
    except ValidationError as error:
        raise ValueError(complaints(error)) from None


def _strip_fence(text: str) -> str:
    """Remove a fence of Markdown around a text, if there is a fence."""
    # Without a pattern: a model that writes blanks without end must not make it slow.
    first, _, body = text.strip().partition("\n")
    lines, _, last = body.rpartition("\n")
    is_fenced = first.rstrip() in (_FENCE, f"{_FENCE}json") and last.lstrip() == _FENCE
    return lines if is_fenced else text


def _first_object(text: str, schema: type[BaseModel]) -> str:
    """The first JSON object in a text, after a model's thoughts; the whole text without an object.

    Raises:
        ValueError: The object has none of the fields of a schema.
    """
    text = text.rpartition(_THOUGHT)[2]
    start = text.find("{")
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return text
    if start < 0 or not isinstance(value, dict):
        return text
    if value and not value.keys() & schema.model_fields.keys():
        raise ValueError(f"the object has none of the fields {', '.join(schema.model_fields)}")
    return text[start:end]


def complaints(error: ValidationError) -> str:
    """The mistakes in some JSON, place by place."""
    mistakes = [
        f"{'.'.join(map(str, mistake['loc'])) or 'the whole'}: {mistake['msg']}"
        for mistake in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return one_line("; ".join(mistakes[:MOST_COMPLAINTS]))


class _WithoutDefaults(GenerateJsonSchema):
    """Schemas without defaults."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


@cache
def strictly(schema: type[M]) -> type[M]:
    """Adapt a shape to OpenAI's strict mode: the JSON schema names no defaults.

    Strict mode requires every field and refuses the word `default`; the client's own helpers leave
    it in. A field with a default may still be missing when a reply is read with `schema` itself:
    not every server is strict.
    """

    class Strict(schema):  # type: ignore[valid-type, misc]
        __doc__ = schema.__doc__

        @classmethod
        def model_json_schema(cls, *args: Any, **more: Any) -> dict[str, Any]:
            json_schema: dict[str, Any] = super().model_json_schema(
                *args, **more | {"schema_generator": _WithoutDefaults}
            )
            return json_schema

    Strict.__name__ = schema.__name__
    return Strict


def request_parts(
    mode: JsonMode, schema: type[BaseModel], messages: Sequence[Any], tools: Sequence[Any]
) -> dict[str, Any]:
    """The parts of a request that depend on the JSON mode.

    Args:
        mode: `strict`: the JSON schema, in strict mode, also for tools. `object`: any JSON object,
            with the schema in the instructions. `text`: the schema in the instructions alone.
        schema: The shape.
        messages: The conversation so far.
        tools: The tools that the model may call, as a `Toolbox` describes them.
    """
    if mode == "strict":
        return {"messages": list(messages), "tools": tools, "response_format": strictly(schema)}
    instruction = SHAPE + json.dumps(schema.model_json_schema())
    first = [*messages[:1]]
    if first and first[0]["role"] == "system":
        system, turns = f"{first[0]['content']}\n\n{instruction}", messages[1:]
    else:
        system, turns = instruction, messages
    request: dict[str, Any] = {
        "messages": [{"role": "system", "content": system}, *turns],
        "tools": [
            {**tool, "function": {k: v for k, v in tool["function"].items() if k != "strict"}}
            for tool in tools
        ],
    }
    return request | ({"response_format": {"type": "json_object"}} if mode == "object" else {})
