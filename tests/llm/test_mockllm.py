"""A server that we did not write: mockllm, installed apart.

    DIG_MOCKLLM=/path/to/venv/bin/python pytest -m backend tests/llm

It has an answer for each text that a user may say last, and knows neither tools nor schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from dig.monitor.messages import Pending
from dig.runtime import Bus, RunResult, Setup, View
from dig.runtime.llm import Model, ModelAgent, ModelSettings
from dig.runtime.llm.settings import JsonMode
from dig.tasks.general_agent import GeneralBrief
from tests.backends import server

pytestmark = [pytest.mark.backend, pytest.mark.timeout(120)]

TEAM = ("ada", "bob")
BRIEF = GeneralBrief("add up")


def prompt(agent: str, event: Pending) -> str:
    """What an agent's model is told about one event."""
    return str(BRIEF(View(agent, TEAM, 1, 0.0, (event,)))[1]["content"])


def decision(event: str, payload: object, to: list[str], *, final: bool = False) -> str:
    output = {"type": "message", "to": to, "payload": json.dumps(payload), "final": final}
    return json.dumps({"fates": [{"event": event, "fate": "consume", "to": []}],
                       "outputs": [output]})  # fmt: skip


ANSWERS = {
    prompt("ada", Pending("e1", "problem", None, [1, 2])): decision("e1", [1, 2], ["bob"]),
    prompt("bob", Pending("e2", "message", "ada", [1, 2])): decision("e2", 3, ["ada"]),
    prompt("ada", Pending("e3", "message", "bob", 3)): decision("e3", 3, [], final=True),
}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The server's address."""
    known = {"responses": ANSWERS, "defaults": {"unknown_response": "I do not know."}}
    (tmp_path / "answers.yml").write_text(json.dumps(known))
    run_it = "from mockllm.cli import main; main()"
    start = ["-c", run_it, "start", "-r", "answers.yml", "-h", "127.0.0.1", "-p", "{port}"]
    with server("DIG_MOCKLLM", tmp_path, start, ready="/models") as address:
        yield f"{address}/v1"


def run(url: str, problem: object, mode: JsonMode = "strict") -> tuple[RunResult, Model]:
    asked: list[Model] = []

    async def main() -> RunResult:
        async with Model(ModelSettings("gpt-4o", url, json_mode=mode)) as one:
            asked.append(one)
            team = dict.fromkeys(TEAM, ModelAgent(one, BRIEF))
            return await Bus(team, Setup(limit_s=5.0, retries=0)).run(problem)

    return anyio.run(main), asked[0]


@pytest.mark.parametrize("mode", ["strict", "object", "text"])
def test_a_team_works_through_it(url: str, mode: JsonMode) -> None:
    """Two agents, three activations, one answer; the server counts its tokens."""
    result, model = run(url, [1, 2], mode)
    assert (result.outcome, result.answer, result.activations) == ("submitted", 3, 3)
    assert model.spending.calls == 3 and model.spending.tokens > 0


def test_what_it_does_not_know_fails_the_activation_and_loses_nothing(url: str) -> None:
    """It says so in words instead of a decision, twice."""
    result, model = run(url, "something else")
    assert "unusable 2 times: the whole: Invalid JSON" in result.errors["ada"]
    assert result.left.unconsumed == ("e1",) and model.spending.calls == 2


def test_a_wrong_address_is_told_at_once(url: str) -> None:
    """In one sentence, with what the server says; nothing is tried again."""
    result, model = run(url.replace("/v1", "/v2"), [1, 2])
    assert result.outcome == "error" and "or no such address" in result.reason
    assert model.spending.calls == 1
