"""What llama.cpp does with our requests, by a server that behaves like it and needs no model."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.llm.llama import TOKEN, Llama, babble, fit
from tests.llm.server import Answer, Server, calls, says, serving

TOOL: Any = {"type": "function", "function": {
    "name": "raw_data", "parameters": {"type": "object", "properties": {"part": {"type": "array"}}},
}}  # fmt: skip
SHAPE: Any = {
    "type": "object",
    "properties": {
        "fates": {"type": "array", "maxItems": 1, "items": {"$ref": "#/$defs/Fate"}},
        "why": {"type": ["string", "number"]},
    },
    "$defs": {"Fate": {"type": "object", "properties": {"event": {"enum": ["e1", "e2"]}}}},
}
STRICT: Any = {"type": "json_schema", "json_schema": {"name": "decision", "schema": SHAPE}}
CALL = calls(("raw_data", {"part": [0, 5]}))


def asked(server: Server, **more: Any) -> Any:
    """The first choice of the answer to one question, by OpenAI's client."""
    with openai.OpenAI(api_key="none", base_url=server.url, max_retries=0) as client:
        return client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "count"}], **more
        ).choices[0]


def test_a_grammar_lets_no_call_through() -> None:
    """With tools alone the model calls; with a schema beside them it has to invent."""
    with serving(Llama(lambda request: CALL)) as server:
        free = asked(server, tools=[TOOL])
        bound = asked(server, tools=[TOOL], response_format=STRICT, tool_choice="required")
    assert free.message.tool_calls[0].function.name == "raw_data"
    assert bound.message.tool_calls is None
    assert json.loads(bound.message.content) == {"fates": [], "why": ""}


def test_required_is_not_enforced() -> None:
    """A model that does not want to call does not."""
    with serving(Llama(lambda request: says("four"))) as server:
        choice = asked(server, tools=[TOOL], tool_choice="required")
    assert (choice.message.content, choice.message.tool_calls) == ("four", None)


@pytest.mark.parametrize("more", [{}, {"response_format": {"type": "json_object"}}])
def test_a_call_of_an_unknown_template_comes_as_text(more: dict[str, Any]) -> None:
    with serving(Llama(lambda request: CALL, knows_calls=False)) as server:
        message = asked(server, tools=[TOOL], **more).message
    assert message.tool_calls is None
    assert json.loads(message.content) == {"name": "raw_data", "arguments": {"part": [0, 5]}}


@pytest.mark.parametrize(
    ("more", "tokens"), [({}, 500), ({"max_tokens": 20}, 20), ({"max_completion_tokens": 9}, 9)]
)
def test_a_reply_without_an_end_ends_at_the_bound(more: dict[str, Any], tokens: int) -> None:
    """Without a bound, at the end of the context."""
    with serving(Llama(lambda request: says("yes"), context=500, endless=[0])) as server:
        choice = asked(server, **more)
    assert choice.finish_reason == "length" and len(choice.message.content) == tokens * TOKEN


def test_a_grammar_leaves_what_fits() -> None:
    """Allowed values stay; others become the first that is allowed, and lists are cut."""
    parts = SHAPE["$defs"]
    wanted = {"fates": [{"event": "e2"}, {"event": "e1"}], "why": 3, "more": 1}
    assert fit(wanted, SHAPE, parts) == {"fates": [{"event": "e2"}], "why": 3}
    assert fit({"fates": [{"event": "consume"}]}, SHAPE, parts)["fates"] == [{"event": "e1"}]


@pytest.mark.parametrize("seed", range(20))
def test_babble_fits_the_schema(seed: int) -> None:
    value = babble(seed)(SHAPE, SHAPE["$defs"])
    assert fit(value, SHAPE, SHAPE["$defs"]) == value


def test_tokens_are_counted_unless_the_server_does_not() -> None:
    for counts in (True, False):
        llama = Llama(lambda request: says("four"), counts=counts)
        with (
            serving(llama) as server,
            openai.OpenAI(api_key="none", base_url=server.url) as client,
        ):
            usage = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "2 + 2?"}]
            ).usage
        assert (usage is not None) == counts
        assert usage is None or usage.completion_tokens == 1


def test_a_withheld_reply_does_not_come() -> None:
    """Nothing sleeps for it: the client gives up, and the next request is answered."""
    llama = Llama(lambda request: says("four"), withheld=[0])
    with (
        serving(llama) as server,
        openai.OpenAI(api_key="none", base_url=server.url, max_retries=0, timeout=0.2) as client,
    ):
        ask: Any = {"model": "m", "messages": [{"role": "user", "content": "2 + 2?"}]}
        with pytest.raises(openai.APITimeoutError):
            client.chat.completions.create(**ask)
        answer = client.with_options(timeout=10).chat.completions.create(**ask)
    assert answer.choices[0].message.content == "four"


def test_an_answer_is_as_it_was_wanted_without_a_grammar() -> None:
    """The server adds nothing."""
    wanted: Answer = says('{"a": [1]}')
    with serving(Llama(lambda request: wanted)) as server:
        assert asked(server).message.content == '{"a": [1]}'
