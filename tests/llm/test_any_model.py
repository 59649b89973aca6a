"""What holds with any language model, good or bad: `make test-model`. No answer is looked at.

    DIG_LLAMA=/path/to/venv/bin/python [DIG_MODEL=FILE.gguf] pytest -m backend tests/llm

The default model has 135 million parameters: it speaks the protocol, and makes no sense.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import anyio
import openai
import pytest
from typer.testing import CliRunner

import dig
from dig.cli import app
from dig.errors import ModelError
from dig.graph.records import End, FindingRow, Finish
from dig.monitor.messages import Pending
from dig.runtime import View
from dig.runtime.llm import Model, ModelAgent, ModelSettings
from dig.runtime.llm.decisions import narrow
from dig.tasks.general_agent import GeneralBrief
from dig.traces.journal.exchanges import EXCHANGES
from dig.traces.journal.reader import read_records
from tests.backends import server

pytestmark = [pytest.mark.backend, pytest.mark.timeout(3600)]

SERVE = str(Path(__file__).with_name("serve_model.py"))
TIMEOUT_S, MOST_REPLY, BUDGET = 900, 500, 6_000
REASONS = (
    "unusable", "length limit", "did not answer", "no usable reply", "kept calling tools", "budget",
)  # fmt: skip
"""The reasons that a turn of a model's agent may fail for."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the model."""
    start = [SERVE, "{port}", *filter(None, [os.environ.get("DIG_MODEL")])]
    folder = tmp_path_factory.mktemp("server")
    with server("DIG_LLAMA", folder, start, ready="/health", OMP_NUM_THREADS="1") as address:
        yield f"{address}/v1"


def run(url: str, folder: Path, *more: object) -> dict[str, Any]:
    """Run two agents on a small task; the result."""
    arguments = [
        "run", "count-frequency", "--agents", 2, "--size", 20, "--model", "local", "--base-url",
        url, "--temperature", 0, "--runs", folder, "--json", *more,
    ]  # fmt: skip
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code in (0, 1), done.output
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module")
def ended(url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run that its budget ends, unless the model answers before or is of no use at all."""
    limits = ("--limit", 7200, "--request-timeout", TIMEOUT_S, "--max-reply", MOST_REPLY)
    return run(url, tmp_path_factory.mktemp("runs"), *limits, "--max-tokens", BUDGET)


def exchanges(result: dict[str, Any]) -> list[dict[str, Any]]:
    lines = (Path(result["directory"]) / EXCHANGES).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_request_ends_in_time_and_within_its_bound(ended: dict[str, Any]) -> None:
    """No reply is longer than allowed; the server says so itself."""
    rows = exchanges(ended)
    assert rows and all(row["seconds"] <= TIMEOUT_S + 5 for row in rows)
    replies = [json.loads(row["reply"]) for row in rows if row["status"] == 200]
    assert replies
    assert all(reply["usage"]["completion_tokens"] <= MOST_REPLY for reply in replies)


def test_every_request_is_counted(ended: dict[str, Any]) -> None:
    """What the trace says was used is what was asked."""
    used = [
        usage
        for record in read_records(Path(ended["directory"]))
        for usage in ([record.usage] if isinstance(record, End) else
                      (record.usage or {}).values() if isinstance(record, Finish) else [])
    ]  # fmt: skip
    counted = sum(usage.get("model_calls", 0) for usage in used if isinstance(usage, dict))
    assert counted == len(exchanges(ended))


def test_every_useless_reply_is_told_to_the_model_or_fails_its_turn(ended: dict[str, Any]) -> None:
    """The model is shown what it said and why that is of no use; a turn says why it failed."""
    said: dict[str, str] = {}
    for row in exchanges(ended):
        *_, before, last = row["messages"]
        if "could not be used" in str(last["content"]):
            assert before["content"] == said[row["who"]]
            assert len(last["content"]) > len("Your reply could not be used: . Reply again")
        if row["status"] == 200:
            said[row["who"]] = json.loads(row["reply"])["choices"][0]["message"]["content"] or ""
    records = read_records(Path(ended["directory"]))
    errors = [record.error for record in records if isinstance(record, End) and record.error]
    strange = [error for error in errors if not any(reason in error for reason in REASONS)]
    assert strange == []


def test_a_budget_stops_the_run(ended: dict[str, Any]) -> None:
    """Nothing is asked after it is used up; each agent may have one request under way then."""
    tokens = [json.loads(row["reply"])["usage"]["total_tokens"] for row in exchanges(ended)]
    assert sum(tokens[:-2]) < BUDGET
    if sum(tokens) >= BUDGET and ended["outcome"] != "submitted":
        assert (ended["outcome"], "budget" in ended["reason"]) == ("stopped", True)


def test_a_run_is_repeated_from_its_trace_byte_for_byte(ended: dict[str, Any]) -> None:
    """Without the model."""
    again = CliRunner().invoke(app, ["replay", ended["directory"], "--rerun"])
    assert again.exit_code == 0 and "came out again" in again.output


def test_a_model_that_is_too_slow_is_no_deadlock(url: str, tmp_path: Path) -> None:
    """The run ends with the sentence that names the cure; nothing else is found."""
    result = run(url, tmp_path, "--request-timeout", 0.01)
    assert result["outcome"] == "error"
    assert "gave no usable reply to 3 requests" in result["reason"]
    assert "(--request-timeout)" in result["reason"]
    records = read_records(Path(result["directory"]))
    found = {record.pattern for record in records if isinstance(record, FindingRow)}
    assert found <= {"FAIL"}
    assert "tokens unknown" in json.dumps(result["verdict"])


def test_a_tool_can_be_called_at_all(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grammar that asks for one call gets it from any model, and the tool is called."""
    drawers: list[str] = []

    def look(drawer: Literal["left", "right"]) -> int:
        """Look into a drawer."""
        drawers.append(drawer)
        return 4

    def narrow_to_a_call(schema: dict[str, Any], **allowed: Any) -> None:
        narrow(schema, **allowed)
        if "anyOf" in schema:  # else it has to decide
            calling = schema["anyOf"][0]
            calling["properties"]["calls"]["maxItems"] = 1
            schema["anyOf"] = [calling]

    monkeypatch.setattr("dig.runtime.llm.model_agent.narrow", narrow_to_a_call)
    event = Pending("e1", "problem", None, "How many are in the drawers?")
    view = View("ada", ("ada", "bob"), 1, 0.0, (event,), tools={"look": look})
    settings = ModelSettings("local", url, timeout_s=TIMEOUT_S, max_reply=MOST_REPLY, attempts=1)

    async def act() -> None:
        async with Model(settings) as model:
            agent = ModelAgent(model, GeneralBrief("Count."), most_rounds=1)
            with suppress(ModelError):  # what it decides then is not looked at
                await agent.act(view)

    anyio.run(act)
    assert {*drawers} <= {"left", "right"} and len(drawers) == 1
    assert view.usage["tool_calls"] == 1


async def asked(url: str, mode: Any) -> list[str]:
    """What two callables say one after the other, bare (`None`) or wrapped."""
    async with openai.AsyncOpenAI(api_key="none", base_url=url, timeout=TIMEOUT_S) as client:

        async def say(text: str) -> str:
            choices = await client.chat.completions.create(
                model="local", messages=[{"role": "user", "content": text}], temperature=0,
                max_tokens=12, extra_body={"cache_prompt": False},
            )  # fmt: skip
            return choices.choices[0].message.content or ""

        async def writer(topic: str) -> str:
            return await say(f"Write a sentence about {topic}.")

        async def critic(text: str) -> str:
            return await say(f"Is this a good sentence? {text}")

        team: Any = {"writer": writer, "critic": critic}
        if mode is not None:
            team = dig.wrap(team, mode=mode)
        words = await team["writer"]("melons")
        answers = [words, await team["critic"](words)]
        if mode is not None:
            dig.unwrap(team)
        return answers


def test_a_wrapped_team_says_what_the_bare_one_says(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At temperature 0; observed and healed."""
    monkeypatch.chdir(tmp_path)
    bare = asyncio.run(asked(url, None))
    assert [asyncio.run(asked(url, mode)) for mode in ("observe", "heal")] == [bare, bare]
