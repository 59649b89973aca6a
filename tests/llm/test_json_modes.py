"""Servers that know no strict schemas: the shape is asked for in another way, and that is told."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from dig.errors import ModelError, SettingsError
from dig.runtime.llm import Model, ModelSettings
from dig.runtime.llm.replies import SHAPE, SHAPE_OR_CALL, parse
from tests.llm.server import Answer, Script, fails, says, serving
from tests.llm.solver import solve
from tests.llm.test_model import QUESTION, Sum
from tests.llm.test_team import Run

pytestmark = pytest.mark.anyio

REFUSALS = [
    # words of OpenAI, DeepSeek and llama.cpp
    fails(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported"),
    fails(400, "This response_format type is unavailable now"),
    fails(400, 'Either "json_schema" or "grammar" can be specified, but not both'),
    # a status and bodies of other shapes, and a refusal of strict tools
    fails(500, "no response format `json_schema`"),
    Answer(b'{"detail": [{"loc": ["body", "response_format", "type"], "msg": "bad"}]}', 422),
    fails(400, "'tools.0.function.strict' is not supported"),
]
NO_OBJECT = Answer(b"{\"error\": \"'response_format.type' must be 'json_schema' or 'text'\"}", 400)
"""Of LM Studio."""


def mode_of(request: dict[str, Any]) -> str:
    """How a request asks for a shape."""
    kind = request.get("response_format", {}).get("type")
    return {"json_schema": "strict", "json_object": "object", None: "text"}[kind]


def knows(*modes: str, refusal: Answer = REFUSALS[0], answer: Script = solve) -> Script:
    """A server that refuses all other ways to ask for a shape."""
    return lambda request: answer(request) if mode_of(request) in modes else refusal


def four(request: dict[str, Any]) -> Answer:
    return says(Sum(total=4))


class Asking:
    """What came of questions to a scripted server."""

    def __init__(self, script: Script, **settings: Any) -> None:
        self.script, self.settings = script, settings
        self.kept: list[dict[str, Any]] = []
        self.told: list[str] = []
        self.usage: dict[str, Any] = {}

    async def __call__(self, times: int = 1, **options: Any) -> list[str]:
        """Ask, and return how each request asked for the shape."""
        with serving(self.script) as server:
            settings = ModelSettings("m", server.url, **self.settings)
            async with Model(settings, keep=self.kept.append) as model:
                model.tell = self.told.append
                for _ in range(times):
                    reply = await model.ask(QUESTION, Sum, usage=self.usage, who="ada", **options)
                    assert reply.parsed == Sum(total=4)
            self.requests = server.requests
        return [mode_of(request) for request in server.requests]


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_server_that_refuses_a_schema_is_asked_for_an_object_from_then_on(
    refusal: Answer,
) -> None:
    """The refusal costs one request in the whole run, and is no failure of the agent."""
    asking = Asking(knows("object", refusal=refusal, answer=four))
    assert await asking(times=3) == ["strict", "object", "object", "object"]


async def test_a_server_that_refuses_an_object_too_is_asked_in_words() -> None:
    """The request has no `response_format` then."""
    asking = Asking(knows("text", refusal=NO_OBJECT, answer=four))
    assert await asking(times=2) == ["strict", "object", "text", "text"]


@pytest.mark.parametrize("mode", ["object", "text"])
async def test_the_schema_stands_in_the_instructions_and_tools_are_not_strict(mode: Any) -> None:
    """At the end of the first system message; what the agent was told before is unchanged."""
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": {}}}
    messages = [{"role": "system", "content": "Add."}, *QUESTION]
    with serving(four) as server:
        settings = ModelSettings("m", server.url, json_mode=mode, native_tools=True)
        async with Model(settings) as model:
            await model.ask(messages, Sum, tools=[tool])
            await model.ask(QUESTION, Sum)
    first, second = server.requests
    schema = json.dumps(Sum.model_json_schema())
    system = f"Add.\n\n{SHAPE_OR_CALL}{schema}"
    assert first["messages"] == [{"role": "system", "content": system}, *QUESTION]
    assert first["tools"] == [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    assert second["messages"] == [{"role": "system", "content": SHAPE + schema}, *QUESTION]
    assert "tools" not in second


async def test_the_mode_is_in_the_exchanges_the_usage_and_in_one_line_for_the_user() -> None:
    """The line has the server's words and the new mode."""
    asking = Asking(knows("object", answer=four))
    await asking(times=2)
    assert [kept["json_mode"] for kept in asking.kept] == ["strict", "object", "object"]
    assert (asking.usage["json_mode"], asking.usage["failed_calls"]) == ("object", 1)
    (line,) = asking.told
    assert line.startswith("m is asked for JSON objects with the schema in the instructions")
    assert "says 400: Invalid parameter: 'response_format'" in line


async def test_agents_that_are_refused_at_once_change_the_mode_once() -> None:
    """Three requests under way are refused; all three are asked again for an object."""

    def slowly(request: dict[str, Any]) -> Answer:
        done = knows("object", answer=four)(request)
        return Answer(done.body, done.status, done.headers, delay_s=0.1)

    with serving(slowly) as server:
        async with Model(ModelSettings("m", server.url)) as model:
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(model.ask, QUESTION, Sum)
            assert model.json_mode == "object"
    modes = [mode_of(request) for request in server.requests]
    assert sorted(modes) == ["object"] * 3 + ["strict"] * 3


@pytest.mark.parametrize("mode", ["strict", "object", "text"])
async def test_a_mode_that_was_chosen_is_kept(mode: str) -> None:
    """A server that refuses it fails the request, with its words."""
    asking = Asking(lambda request: REFUSALS[0], json_mode=mode)
    with pytest.raises(ModelError, match="response_format"):
        await asking()
    assert {kept["json_mode"] for kept in asking.kept} == {mode} and len(asking.kept) == 1


async def test_another_bad_request_changes_no_mode() -> None:
    """Only a refusal that names the shape does."""
    asking = Asking(lambda request: fails(400, "context too long"))
    with pytest.raises(ModelError, match="context too long"):
        await asking()
    assert len(asking.kept) == 1


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(SettingsError, match="json_mode must be auto, strict, object, text"):
        ModelSettings("m", json_mode="loose")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        '{"total": 4}',
        'The sum is: {"total": 4}. Is {"total": 5} better?',
        '```json\n{"total": 4}\n```\nI added them up.',
        '<think>{"total": 5}? No.</think>\n{"total": 4}',
    ],
)
def test_the_first_object_of_a_text_is_taken(text: str) -> None:
    """Whatever stands around it; what stands in a model's thoughts does not count."""
    assert parse(text, Sum) == Sum(total=4)


class Quote(BaseModel):
    words: str


def test_a_reply_that_quotes_the_end_of_thoughts_is_read_from_its_beginning() -> None:
    """A payload may hold the mark; what comes before an object is left out, and nothing in it."""
    assert parse('{"words": "</think>{}"}', Quote) == Quote(words="</think>{}")


@pytest.mark.parametrize("text", ["```\n```", "```\n\n```", "```"])
def test_a_fence_around_nothing_is_no_answer(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid JSON"):
        parse(text, Sum)


@pytest.mark.parametrize("text", ["```\n", "```json \n \n", "\n", "```", "{\n", "[", "</think>"])
def test_no_reply_makes_it_slow(text: str) -> None:
    """64 KB of it, with and without an end, are refused in no time."""
    for reply in (text * 16_000, text + "\n" * 64_000, text + " \n" * 32_000 + "```x"):
        began = time.process_time()
        with pytest.raises(ValueError, match=r"Invalid JSON|empty|object"):
            parse(reply, Sum)
        assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("four", "Invalid JSON"),
        ('{"total": ', "Invalid JSON"),
        ("{" * 100_000, "Invalid JSON"),
        ('[4] {"sum": 4}', "the object has none of the fields total"),
        ('{"total": "many"}', "total: Input should be a valid integer"),
    ],
)
def test_a_text_without_such_an_object_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text, Sum)


@pytest.mark.parametrize("mode", ["object", "text"])
async def test_a_team_solves_its_problem_in_each_mode(mode: str) -> None:
    """With tools; the server refuses the others."""
    run = Run(knows(mode))
    result = await run()
    assert (result.outcome, result.failures) == ("submitted", {})
    assert run.model.json_mode == mode
