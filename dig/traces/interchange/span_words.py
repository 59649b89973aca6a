"""The meaning of attributes: the kind of work, names, words, tokens.

The names are those of OpenTelemetry's GenAI conventions (those before v0.1.0, too), OpenInference
and some libraries.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

from dig._util.json_values import plain
from dig.errors import PayloadError
from dig.traces.otel import conventions

_KINDS = {
    conventions.KIND: {"AGENT": "agent", "TOOL": "tool", "LLM": "model"},
    conventions.OPERATION: {"invoke_agent": "agent", "execute_tool": "tool", "chat": "model",
                            "generate_content": "model", "text_completion": "model"},
    "traceloop.span.kind": {"agent": "agent", "tool": "tool"},
}  # fmt: skip
"""The kinds of work by attribute and value; any other work is plumbing around them."""

PREFIXES = {"invoke_agent ": "agent", "agent_run ": "agent", "agent run": "agent",
            "execute_tool ": "tool", "running tool: ": "tool", "chat ": "model"}  # fmt: skip
"""The kinds of work by the beginning of a span's name, where no attribute tells."""

AGENT = ("crewai.agent.role", conventions.AGENT_NAME, "agent.name", "agent_name", "graph.node.id")
TOOL = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
SESSION = (conventions.CONVERSATION, conventions.SESSION)

Side = Literal["question", "answer"]

_QUESTION = (
    conventions.INPUT, conventions.INPUT_MESSAGES, "pydantic_ai.all_messages",
    "all_messages_events", "gen_ai.tool.call.arguments", "traceloop.entity.input",
    "gen_ai.user.message", "gcp.vertex.agent.tool_call_args",
)  # fmt: skip
_ANSWER = (
    conventions.OUTPUT, "final_result", conventions.OUTPUT_MESSAGES, "pydantic_ai.all_messages",
    "all_messages_events", "gen_ai.tool.call.result", "traceloop.entity.output", "gen_ai.choice",
    "gcp.vertex.agent.tool_response",
)  # fmt: skip
_FLAT: dict[Side, tuple[str, str]] = {
    "question": ("llm.input_messages.", "gen_ai.prompt."),
    "answer": ("llm.output_messages.", "gen_ai.completion."),
}
_ROLES = {"question": ("user", "human"), "answer": ("assistant", "ai", "model")}
_TOKENS = {
    "input_tokens": (conventions.INPUT_TOKENS, "llm.token_count.prompt",
                     "gen_ai.usage.prompt_tokens", "gen_ai.aggregated_usage.input_tokens"),
    "output_tokens": (conventions.OUTPUT_TOKENS, "llm.token_count.completion",
                      "gen_ai.usage.completion_tokens", "gen_ai.aggregated_usage.output_tokens"),
}  # fmt: skip

_HOLES = ("redacted", "scrubbed", "truncated")
_AROUND_HOLES = ("[", "<", "(", "__", "*")
_LEAST_CUT = 64
"""The least length of a text that is taken for cut by a limit of an exporter."""


def kind_of(attributes: Mapping[str, Any], name: str) -> str:
    """`agent`, `tool` or `model`, by the attributes or the name of a span; empty: plumbing."""
    for key, kinds in _KINDS.items():
        if key in attributes:
            return kinds.get(str(attributes[key]), "")
    return next((kind for prefix, kind in PREFIXES.items() if name.startswith(prefix)), "")


def first(attributes: Mapping[str, Any], keys: Iterable[str]) -> str:
    """The first attribute with a value, as a text; empty: none has a value."""
    return next((str(attributes[key]) for key in keys if attributes.get(key)), "")


def words(attributes: Mapping[str, Any], side: Side, limit: int | None = None) -> Any:
    """The question or the answer in the attributes of a span; ``None``: there is none.

    Args:
        attributes: The attributes of the span.
        side: Which of the two.
        limit: The length at which the exporter cuts texts; ``None``: it does not cut.
    """
    for key in _QUESTION if side == "question" else _ANSWER:
        if attributes.get(key) not in (None, ""):
            payload = _payload(attributes[key], side, limit)
            if payload is not None:
                return payload
    flat: dict[str, dict[str, Any]] = {}
    for prefix in _FLAT[side]:
        for key, value in attributes.items():
            number, _, path = key.removeprefix(prefix).partition(".")
            if key.startswith(prefix) and number.isdecimal():
                name = path.rpartition(".")[2].replace("text", "content")
                flat.setdefault(number, {})[name] = value
    return _payload([flat[n] for n in sorted(flat, key=int)], side, limit) if flat else None


def tokens(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The numbers of tokens in the attributes of spans, together."""
    counts: Counter[str] = Counter()
    for attributes in rows:
        for name, keys in _TOKENS.items():
            if (number := first(attributes, keys)).isdecimal():
                counts[name] += int(number)
    return dict(counts)


def cut_length(rows: Iterable[Mapping[str, Any]]) -> int | None:
    """The length at which an exporter cuts texts; ``None``: fewer than two texts are cut."""
    texts = {
        value
        for attributes in rows
        for key in (*_QUESTION, *_ANSWER)
        if isinstance(value := attributes.get(key), str)
    }
    longest = max(map(len, texts), default=0)
    cut = sum(len(text) == longest for text in texts)
    return longest if longest >= _LEAST_CUT and cut > 1 else None


def payload_of(text: str) -> Any:
    """A text as a payload; `$cut` for a text with a hole."""
    return _cut(text) if _has_hole(text, is_json=False) else text


def _cut(text: str) -> dict[str, str]:
    return {"$cut": blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()}


def _payload(value: Any, side: Side, limit: int | None) -> Any:
    """A value as a payload: of messages the last words of a side, `$cut` for a text with a hole."""
    if isinstance(value, str):
        text, value = value, parsed(value)
        is_json = value is not text  # a JSON text without its end is none
        if (len(text) == limit and not is_json) or _has_hole(text, is_json=is_json):
            return _cut(text)
    messages = value.get("messages") if isinstance(value, dict) else value
    message = (value.get("new_message") or value.get("content")) if messages is None else None
    if isinstance(message, dict) and (text := "".join(_texts(message))):
        return text  # the arguments of a runner of ADK, or an event
    if isinstance(value, dict) and isinstance(value.get("raw"), str) and side == "answer":
        return value["raw"]  # the output of a task of CrewAI
    if isinstance(messages, list) and messages and all(_role(m) for m in messages):
        texts = ["".join(_texts(m)) for m in messages if _role(m) in _ROLES[side]]
        texts = [text for text in texts if text]
        return _payload(texts[-1], side, limit) if texts else None
    try:
        return plain(value)
    except PayloadError:
        return None


def _role(message: Any) -> str:
    value = message.get("role") or message.get("type") if isinstance(message, dict) else None
    return value if isinstance(value, str) else ""


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content") or message.get("parts")
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type", "text") == "text":
            text = part.get("content") or part.get("text")
            yield text if isinstance(text, str) else ""


def parsed(text: str) -> Any:
    """A JSON object or list in a text; else the text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _has_hole(text: str, *, is_json: bool) -> bool:
    """Whether a secret or the end was taken out of a text."""
    low = text.lower()
    if any(f"{mark}{hole}" in low for hole in _HOLES for mark in _AROUND_HOLES):
        return True
    is_half = text[:1] in ("{", "[") and text[-1:] not in ("}", "]")
    return not is_json and (is_half or (len(text) >= _LEAST_CUT and text.endswith(("…", "..."))))
