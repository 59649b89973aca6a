"""Bounds that servers keep, refuse or ignore, and servers that are of no use at all."""

from __future__ import annotations

from typing import Any

import pytest

from dig.errors import ModelError, StopRunError
from dig.runtime.llm import Model, ModelSettings
from dig.runtime.llm.model import MOST_USELESS
from dig.runtime.llm.settings import BOUNDS
from tests.llm.server import Answer, Script, Server, fails, says, serving
from tests.llm.test_model import QUESTION, RIGHT, Sum

pytestmark = pytest.mark.anyio

NEWER, OLDER = BOUNDS


def bounds_of(server: Server) -> list[dict[str, int]]:
    """The bounds on a reply in each request."""
    return [{name: row[name] for name in BOUNDS if name in row} for row in server.requests]


async def asked(script: Script | list[Answer], times: int, **settings: Any) -> Server:
    """Ask so often, whatever comes of it."""
    with serving(script) as server:
        async with Model(ModelSettings("m", server.url, **settings)) as model:
            for _ in range(times):
                try:
                    await model.ask(QUESTION, Sum)
                except ModelError:
                    continue
    return server


def refusing(*names: str) -> Script:
    """A server that knows a bound by none of these names."""

    def answer(request: dict[str, Any]) -> Answer:
        wrong = [name for name in names if name in request]
        return fails(400, f"Unsupported parameter: '{wrong[0]}'.") if wrong else RIGHT

    return answer


async def test_each_reply_is_bounded() -> None:
    """The server is told after how many tokens a reply is to end."""
    assert bounds_of(await asked([RIGHT], 1)) == [{NEWER: 2000}]
    assert bounds_of(await asked([RIGHT], 1, max_reply=50)) == [{NEWER: 50}]


@pytest.mark.parametrize(
    ("refused", "sent"),
    [
        ([NEWER], [{NEWER: 50}, {OLDER: 50}, {OLDER: 50}]),
        ([OLDER], [{NEWER: 50}, {NEWER: 50}]),
        ([NEWER, OLDER], [{NEWER: 50}, {OLDER: 50}, {}, {}]),
    ],
)
async def test_a_refused_name_of_the_bound_is_sent_no_more(refused: Any, sent: Any) -> None:
    """The other name is tried; a server that knows neither is asked without a bound."""
    assert bounds_of(await asked(refusing(*refused), 2, max_reply=50)) == sent


@pytest.mark.parametrize(
    "reply", [says(Sum(total=4), usage=(100, 60)), Answer(RIGHT.body, delay_s=0.8)]
)
async def test_an_ignored_bound_is_sent_under_the_older_name(reply: Answer) -> None:
    """A longer reply than allowed shows that it was ignored; one that is too late may be so."""
    server = await asked([reply, RIGHT], 2, max_reply=50, timeout_s=0.5, retries=1)
    assert bounds_of(server) == [{NEWER: 50}, {OLDER: 50}]


async def test_a_server_that_refuses_the_older_name_is_sent_the_newer_one_again() -> None:
    """As OpenAI's reasoning models do, after a reply that was too late for another reason."""
    refuses = refusing(OLDER)

    def script(request: dict[str, Any]) -> Answer:
        return Answer(RIGHT.body, delay_s=0.0 if OLDER in request else 0.8)

    replies = [script, refuses, refuses]
    server = await asked(
        lambda request: replies.pop(0)(request), 2, max_reply=50, timeout_s=0.5, retries=1
    )
    assert bounds_of(server) == [{NEWER: 50}, {OLDER: 50}, {NEWER: 50}]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (says("four"), "the model's reply was unusable 2 times: the whole: Invalid JSON"),
        (says("{", finish="length"), "was cut off at its length limit (--max-reply)"),
        (fails(400, "context too long"), "says 400: context too long"),
        (Answer(b"not json"), "sent no chat completion"),
    ],
)
async def test_a_server_that_never_gave_a_usable_reply_ends_the_run(
    reply: Answer, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence says how often it was asked, and what was wrong with the last reply."""
    monkeypatch.setattr("dig.runtime.llm.model.FIRST_WAIT_S", 0.001)
    told: list[Exception] = []
    with serving([reply]) as server:
        async with Model(ModelSettings("m", server.url)) as model:
            for _ in range(MOST_USELESS):
                with pytest.raises((ModelError, StopRunError)) as raised:
                    await model.ask(QUESTION, Sum)
                told.append(raised.value)
    count = len(server.requests)
    error = next(error for error in told if isinstance(error, StopRunError))
    start = f"{server.url} gave no usable reply to {count} requests; the last one: "
    assert str(error).startswith(start)
    assert reason in str(error) and MOST_USELESS <= count <= MOST_USELESS + 2


async def test_a_server_that_was_of_use_before_does_not_end_the_run() -> None:
    """However many unusable replies follow."""
    server = await asked([RIGHT, says("four")], MOST_USELESS)
    assert len(server.requests) == 2 * MOST_USELESS - 1


async def test_a_server_that_is_too_slow_from_the_start_is_told_with_the_cure() -> None:
    """Three requests without a reply; the sentence names the limit and its option."""
    with serving([Answer(RIGHT.body, delay_s=0.2)]) as server:
        async with Model(ModelSettings("m", server.url, timeout_s=0.02)) as model:
            for _ in range(2):
                with pytest.raises(ModelError, match=r"within 0.02 s \(--request-timeout\)"):
                    await model.ask(QUESTION, Sum)
            with pytest.raises(
                StopRunError, match=r"no usable reply to 3 requests; .* \(--request-timeout\)"
            ):
                await model.ask(QUESTION, Sum)


async def test_the_tokens_of_requests_without_a_reply_are_unknown() -> None:
    """A request that was refused took none; one that was too late may have taken many."""
    replies = [fails(400, "too long"), Answer(RIGHT.body, delay_s=0.8), RIGHT]
    usage: dict[str, Any] = {}
    with serving(replies) as server:
        async with Model(ModelSettings("m", server.url, timeout_s=0.5)) as model:
            for _ in range(2):
                with pytest.raises(ModelError):
                    await model.ask(QUESTION, Sum, usage=usage)
            await model.ask(QUESTION, Sum, usage=usage)
    assert usage == {
        "model": "m", "model_calls": 3, "failed_calls": 2, "uncounted_calls": 1,
        "input_tokens": 100, "output_tokens": 10,
    }  # fmt: skip
