"""Asking a model: over real HTTP, from a server that answers in every way there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from dig.errors import ModelError, SettingsError, StopRunError
from dig.runtime.llm import Model, ModelSettings
from tests.llm.server import Answer, Script, Server, calls, fails, refuses, says, serving

pytestmark = pytest.mark.anyio

SECRET = "q1w2e3r4t5"
QUESTION = [{"role": "user", "content": "2 + 2?"}]


class Sum(BaseModel):
    total: int


RIGHT = says(Sum(total=4))


class Asked:
    """What came of some questions to a scripted server."""

    def __init__(self, script: Script | Sequence[Answer], **settings: Any) -> None:
        self._script, self._settings = script, settings
        self.kept: list[dict[str, Any]] = []
        self.usage: dict[str, Any] = {}
        self.server: Server

    async def __call__(self, times: int = 1, **options: Any) -> Any:
        with serving(self._script) as self.server:
            settings = ModelSettings("m", self.server.url, **self._settings)
            environment = {"OPENAI_API_KEY": SECRET}
            async with Model(settings, keep=self.kept.append, environment=environment) as model:
                for _ in range(times - 1):
                    await model.ask(QUESTION, Sum, usage=self.usage)
                return await model.ask(QUESTION, Sum, usage=self.usage, **options)


async def test_an_answer_of_the_right_shape_comes_back_parsed_with_what_it_took() -> None:
    """The answer is an object of the schema, and the usage says how much it took."""
    asked = Asked([RIGHT], price_in=1.0, price_out=10.0)
    reply = await asked(who="ada")
    assert reply.parsed == Sum(total=4)
    assert reply.usage == {
        "model": "m", "model_calls": 1, "input_tokens": 100, "output_tokens": 10,
        "cost_usd": pytest.approx(0.0002),
    }  # fmt: skip
    assert asked.usage == reply.usage
    assert asked.server.keys == [f"Bearer {SECRET}"]
    (kept,) = asked.kept
    assert (kept["who"], kept["status"], kept["error"]) == ("ada", 200, None)
    assert kept["messages"] == QUESTION and '"total' in kept["reply"]


async def test_the_shape_is_sent_as_a_strict_schema() -> None:
    """The request has the JSON schema of what is asked for, in strict mode."""
    asked = Asked([RIGHT])
    await asked()
    sent = asked.server.requests[0]["response_format"]
    assert sent["type"] == "json_schema" and sent["json_schema"]["strict"] is True
    assert sent["json_schema"]["schema"]["required"] == ["total"]
    assert sent["json_schema"]["schema"]["additionalProperties"] is False


@pytest.mark.parametrize(
    "wrong", ["four", '{"total": 4', '{"total": "many"}', '{"sum": 4}', "", "[4]", "null"]
)
async def test_an_unusable_answer_is_asked_for_again_with_what_is_wrong(wrong: str) -> None:
    """The second request shows the model what it said and why that is of no use."""
    asked = Asked([says(wrong), RIGHT])
    assert (await asked()).parsed == Sum(total=4)
    first, second = asked.server.requests
    assert second["messages"][:-2] == first["messages"]
    assert second["messages"][-2] == {"role": "assistant", "content": wrong}
    assert "could not be used" in second["messages"][-1]["content"]
    assert asked.usage["model_calls"] == 2 and asked.usage["input_tokens"] == 200


@pytest.mark.parametrize(
    ("settings", "times"), [({}, 2), ({"attempts": 1}, 1), ({"attempts": 3}, 3)]
)
async def test_an_answer_that_stays_unusable_is_an_error(
    settings: dict[str, Any], times: int
) -> None:
    """There are as many attempts as the settings say, not more, and all of it is counted."""
    asked = Asked([says('{"total": "many"}')], **settings)
    why = f"unusable {times} times?: total: Input should be a valid integer"
    with pytest.raises(ModelError, match=why):
        await asked()
    assert len(asked.server.requests) == times and asked.usage["output_tokens"] == 10 * times


async def test_a_check_may_find_an_answer_unusable() -> None:
    """What is wrong beyond the shape is said to the model in the same way."""

    def check(answer: Sum) -> None:
        if answer.total != 4:
            raise ValueError("that is not the sum")

    asked = Asked([says(Sum(total=5)), RIGHT])
    assert (await asked(check=check)).parsed == Sum(total=4)
    assert "that is not the sum" in asked.server.requests[1]["messages"][-1]["content"]


async def test_a_fence_around_an_answer_does_no_harm() -> None:
    """Servers that ignore the schema often send Markdown."""
    assert (await Asked([says('```json\n{"total": 4}\n```')])()).parsed == Sum(total=4)


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (refuses("I cannot \x1b[31madd"), r"the model refused: I cannot \\u001b\[31madd"),
        (says('{"tot', finish="length"), "cut off at its length limit"),
        (says("", finish="content_filter"), "withheld by a content filter"),
        (fails(400, "context too long"), "says 400: context too long"),
    ],
)
async def test_what_asking_again_would_not_change_is_an_error_at_once(
    answer: Answer, what: str
) -> None:
    """Refusals, length stops, content filters and bad requests are sent once, and counted."""
    asked = Asked([answer])
    with pytest.raises(ModelError, match=what):
        await asked()
    assert asked.usage["model_calls"] == 1
    assert asked.usage.get("input_tokens") == (100 if answer.status == 200 else None)


@pytest.mark.parametrize(
    "answer",
    [
        fails(429, "slow down", Retry_After="0.01"),
        fails(500, "oops", Retry_After="0.01"),
        fails(503, "<html>", Retry_After_Ms="10"),
        Answer(RIGHT.body, cut=0),
        Answer(RIGHT.body, cut=40),
        Answer(RIGHT.body[:40]),
        Answer(b"not json"),
        Answer(b'{"choices": []}'),
        Answer(b"\xff\xfe", headers={"Content-Type": "text/plain"}),
    ],
    ids=["429", "500", "503", "dropped", "cut off", "torn", "no json", "no choices", "no text"],
)
async def test_a_server_that_stumbles_is_asked_again(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever may have been a passing fault of the server is tried again."""
    monkeypatch.setattr("dig.runtime.llm.model.FIRST_WAIT_S", 0.01)
    asked = Asked([answer, RIGHT])
    assert (await asked()).parsed == Sum(total=4)
    assert len(asked.server.requests) == 2
    assert asked.kept[0]["error"] and asked.kept[1]["error"] is None


async def test_a_server_that_keeps_stumbling_is_asked_three_times() -> None:
    """The number of repetitions is bounded, and the error says what the server said."""
    asked = Asked([fails(429, "slow down", Retry_After="0.001")])
    with pytest.raises(ModelError, match=r"http://127.* says 429: slow down"):
        await asked()
    assert asked.usage["model_calls"] == 3


async def test_a_retry_after_is_waited_for_by_the_whole_team() -> None:
    """Nobody sends a request before the moment that the server named."""
    script = [fails(429, Retry_After="0.2"), RIGHT]
    with serving(script) as server:
        async with Model(ModelSettings("m", server.url, concurrency=1)) as model:
            began = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(model.ask, QUESTION, Sum)
            assert anyio.current_time() - began >= 0.2


async def test_a_retry_after_of_an_hour_is_not_waited_for() -> None:
    """The error says what the server asks for."""
    asked = Asked([fails(429, "slow down", Retry_After="3600")])
    with pytest.raises(ModelError, match="asks us to wait 3600 s"):
        await asked()
    assert asked.usage["model_calls"] == 1


async def test_a_retry_after_may_be_a_date_by_the_clock_of_the_server() -> None:
    """What counts is how long that is after the date of the reply, whatever our clock says."""
    date, later = (f"Wed, 21 Oct 2015 0{hour}:28:00 GMT" for hour in (7, 8))
    asked = Asked([fails(429, "slow down", Date=date, Retry_After=later)])
    with pytest.raises(ModelError, match="asks us to wait 3600 s"):
        await asked()


async def test_a_slow_server_is_left_after_the_timeout() -> None:
    """A request has a time limit as a whole."""
    asked = Asked([Answer(RIGHT.body, delay_s=0.4)], timeout_s=0.1)
    with pytest.raises(ModelError, match=r"did not answer within 0.1 s"):
        await asked()


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (fails(401, f"Incorrect API key: {SECRET}"), "the key in OPENAI_API_KEY is not accepted"),
        (fails(403, "no access"), "the key in OPENAI_API_KEY is not accepted"),
        (fails(404, "no such model"), "there is no model 'm' at this address"),
        (fails(402, "pay"), "no credit left"),
        (fails(429, "quota", "insufficient_quota"), "no credit left"),
    ],
)
async def test_what_every_request_would_meet_is_said_once_and_ends_the_run(
    answer: Answer, what: str
) -> None:
    """Keys, models and credit do not come back by asking again; the key itself is not told."""
    asked = Asked([answer])
    with pytest.raises(StopRunError, match=what) as raised:
        await asked()
    assert len(asked.server.requests) == 1 and SECRET not in str(raised.value)


async def test_after_the_end_nothing_is_sent_any_more() -> None:
    """Who asks after a request that found the key wrong is told so without a request."""
    with serving([fails(401, "wrong")]) as server:
        async with Model(ModelSettings("m", server.url)) as model:
            for _ in range(3):
                with pytest.raises(StopRunError, match="not accepted"):
                    await model.ask(QUESTION, Sum)
        assert len(server.requests) == 1


async def test_a_server_that_is_not_there_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address is found out by the first question."""
    monkeypatch.setattr("dig.runtime.llm.model.FIRST_WAIT_S", 0.01)
    with serving([RIGHT]) as server:
        url = server.url
    async with Model(ModelSettings("m", url)) as model:
        with pytest.raises(StopRunError, match=f"cannot reach {url}"):
            await model.ask(QUESTION, Sum)


async def test_a_server_that_dies_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has answered is given a second chance, then the run ends."""
    monkeypatch.setattr("dig.runtime.llm.model.FIRST_WAIT_S", 0.01)
    asked = Asked([RIGHT, Answer(RIGHT.body, cut=0)])
    with serving(asked._script) as server:
        async with Model(ModelSettings("m", server.url)) as model:
            await model.ask(QUESTION, Sum)
            with pytest.raises(ModelError, match="cannot reach"):
                await model.ask(QUESTION, Sum)
            with pytest.raises(StopRunError, match="cannot reach"):
                await model.ask(QUESTION, Sum)


async def test_no_more_requests_are_under_way_than_allowed() -> None:
    """The limit of concurrency holds for all who share the model."""
    with serving(lambda request: Answer(RIGHT.body, delay_s=0.05)) as server:
        settings = ModelSettings("m", server.url, concurrency=2)
        async with Model(settings) as model, anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(model.ask, QUESTION, Sum)
        assert server.most_under_way == 2 and len(server.requests) == 6


@pytest.mark.parametrize(
    ("budget", "what"),
    [
        ({"max_tokens": 220}, "the budget of 220 tokens is used up: 220 tokens in 2 requests"),
        ({"max_usd": 0.2, "price_in": 1000.0, "price_out": 0.0},
         r"the budget of \$0.2 is used up: \$0.2000 for 220 tokens in 2 requests"),
    ],
)  # fmt: skip
async def test_a_budget_that_is_used_up_ends_the_run(budget: dict[str, Any], what: str) -> None:
    """The answer that used it up still counts; the next request is not sent."""
    asked = Asked([RIGHT], **budget)
    with pytest.raises(StopRunError, match=what):
        await asked(times=3)
    assert len(asked.server.requests) == 2


async def test_a_budget_cannot_be_kept_with_a_server_that_counts_nothing() -> None:
    """Better no run than one of unknown cost; without a budget it does no harm."""
    silent = says(Sum(total=4), usage=None)
    with pytest.raises(StopRunError, match="does not say how many tokens"):
        await Asked([silent], max_tokens=100)()
    uncounted = {"model": "m", "model_calls": 1, "uncounted_calls": 1}
    assert (await Asked([silent])()).usage == uncounted


async def test_a_question_that_is_given_up_is_counted_and_kept() -> None:
    """A request that is cut off has been sent, and may have to be paid for."""
    asked = Asked([Answer(RIGHT.body, delay_s=0.3)])
    with anyio.move_on_after(0.1):
        await asked()
    assert asked.usage == {"model": "m", "model_calls": 1, "uncounted_calls": 1}
    assert asked.kept[0]["error"] == "cut off"


async def test_tool_calls_are_handed_out() -> None:
    """What the model wants to call is told, and so is the message to go on from."""
    reply = await Asked([calls(("size", {"part": [0, 5]}))], native_tools=True)()
    assert reply.parsed is None
    assert [(call.function.name, call.function.arguments) for call in reply.calls] == [
        ("size", '{"part": [0, 5]}')
    ]
    assert reply.message["tool_calls"][0]["id"] == "call-0"


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"model": " "}, "no model is named"),
        ({"base_url": "localhost:80"}, "is no address of a server"),
        ({"base_url": "file:///etc"}, "is no address of a server"),
        ({"timeout_s": 0}, "timeout_s must be more than 0"),
        ({"retries": -1}, "retries must not be negative"),
        ({"max_reply": 0}, "max_reply must be more than 0"),
        ({"attempts": 0}, "attempts must be more than 0"),
        ({"max_usd": 1.0}, "needs both prices"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], what: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(SettingsError, match=what):
        ModelSettings(**{"model": "m", **settings})


def test_a_missing_key_is_told_before_anything_is_sent() -> None:
    """OpenAI needs one; another server only if a variable was named."""
    with pytest.raises(SettingsError, match="set the environment variable OPENAI_API_KEY"):
        ModelSettings("m").key({})
    with pytest.raises(SettingsError, match="set the environment variable MINE"):
        ModelSettings("m", "http://localhost/v1", api_key_env="MINE").key({})
    assert ModelSettings("m", "http://localhost/v1").key({}) == "none"


def test_an_address_is_shown_without_the_password_in_it() -> None:
    """What is shown and written down holds no secret."""
    assert ModelSettings("m", "http://me:pw@host:1/v1?k=s").where == "http://host:1/v1"
