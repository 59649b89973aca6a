"""Recorded model traffic, played back without a network: wrapped is as bare, and raises no alarm.

`DIG_CASSETTES` names a folder with YAML files as vcrpy writes them, of runs of the OpenAI Agents
SDK against the Responses API. Agents, tools and what the tools returned are in the requests.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, FunctionTool, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

import dig

FOLDER = Path(os.environ.get("DIG_CASSETTES", "no cassettes"))
CASSETTES = sorted(FOLDER.glob("*.yaml"))
pytestmark = pytest.mark.skipif(not CASSETTES, reason="DIG_CASSETTES names no folder of cassettes")
# httpx, or httpx2 from openai 3 on.
httpx = import_module(DefaultAsyncHttpxClient.__mro__[1].__module__)

set_tracing_disabled(True)


class Cassette:
    """A recording, with the team that it was made with, as far as the requests tell.

    Attributes:
        asked: The requests that were made in the playback.
    """

    def __init__(self, path: Path) -> None:
        yaml = pytest.importorskip("yaml")
        interactions = yaml.safe_load(path.read_text("utf-8"))["interactions"]
        recorded = [one for one in interactions if one["request"]["uri"].endswith("/responses")]
        self.requests = [json.loads(one["request"]["body"]) for one in recorded]
        self.responses = [one["response"] for one in recorded]
        self.asked: list[Any] = []
        items = [item for request in self.requests for item in request["input"]]
        self._results = {i["call_id"]: i["output"] for i in items if "output" in i}
        transport = httpx.MockTransport(self._answer)
        self.client = AsyncOpenAI(
            api_key="none", http_client=httpx.AsyncClient(transport=transport), max_retries=0
        )

    def _answer(self, request: Any) -> Any:
        number = len(self.asked)
        asked = json.loads(request.content)
        asked.pop("prompt_cache_key", None)  # random, new for each run
        self.asked.append(asked)
        response = self.responses[number]
        body = response["body"]["string"]
        body = body.encode() if isinstance(body, str) else gzip.decompress(body)
        kind = next(v for k, v in response["headers"].items() if k.lower() == "content-type")
        return httpx.Response(200, content=body, headers={"content-type": kind[0]})

    def team(self) -> dict[str, Agent[Any]]:
        """The agents by their instructions; an agent goes by the tool that hands over to it."""
        agents: dict[str, Agent[Any]] = {}
        before: Agent[Any] | None = None
        for request in self.requests:
            words, tools = request["instructions"], request["tools"]
            if words not in agents:
                calls = [item for item in request["input"] if item.get("type") == "function_call"]
                name = calls[-1]["name"].removeprefix("transfer_to_") if calls else "entry"
                model = OpenAIResponsesModel(request["model"], self.client)
                agent = Agent(name, instructions=words, model=model)
                agent.tools = [self._tool(tool) for tool in tools if "_to_" not in tool["name"]]
                agents[words] = agent
                if before is not None and calls:
                    before.handoffs.append(agent)
            before = agents[words]
        return agents

    def _tool(self, tool: dict[str, Any]) -> FunctionTool:
        async def result(context: Any, arguments: str) -> str:
            return str(self._results[context.tool_call_id])

        return FunctionTool(
            tool["name"], tool.get("description") or "", tool["parameters"], result,
            strict_json_schema=False,
        )  # fmt: skip

    def questions(self) -> list[dict[str, Any]]:
        """The first requests of the runs: those in which nobody but the user has spoken."""
        return [r for r in self.requests if all(item.get("role") == "user" for item in r["input"])]


async def play(path: Path, mode: Any) -> tuple[Any, list[dig.Finding]]:
    """What came of a cassette: the answers, the events of streams, the requests; and findings."""
    cassette = Cassette(path)
    team, seen, findings = cassette.team(), list[Any](), list[dig.Finding]()
    for question in cassette.questions():
        entry = team[question["instructions"]]
        if mode is not None:
            dig.wrap(entry, mode=mode, tools=True)
        words: Any = question["input"][-1]["content"]
        if question["stream"]:
            streamed = Runner.run_streamed(entry, words)
            seen.append([event.type async for event in streamed.stream_events()])
            seen.append(streamed.final_output)
        else:
            seen.append((await Runner.run(entry, words)).final_output)
        if mode is not None:
            findings += dig.session_of(entry).findings
            assert dig.session_of(entry).statistics().faults == 0
            dig.unwrap(entry)
    assert len(cassette.asked) == len(cassette.requests)
    calls = [
        [[item["call_id"] for item in request["input"] if "output" in item] for request in requests]
        for requests in (cassette.asked, cassette.requests)
    ]
    assert calls[0] == calls[1]
    await cassette.client.close()
    return (seen, cassette.asked), findings


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("path", CASSETTES, ids=[path.stem for path in CASSETTES])
def test_a_recorded_run_is_the_same_wrapped_and_raises_no_alarm(path: Path, mode: str) -> None:
    """The same requests to the model, the same events, the same answers."""
    bare, _ = asyncio.run(play(path, None))
    wrapped, findings = asyncio.run(play(path, mode))
    assert wrapped == bare
    assert [finding for finding in findings if finding.is_alarm] == []
    assert all(answer for answer in bare[0])
