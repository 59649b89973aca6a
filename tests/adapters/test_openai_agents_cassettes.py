"""Recorded model traffic of OpenAI agents: wrapped is as bare, and raises no alarm."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, FunctionTool, OpenAIResponsesModel, Runner, set_tracing_disabled

import dig

from .cassettes import CASSETTES, NEEDS_CASSETTES, Cassette

pytestmark = NEEDS_CASSETTES

set_tracing_disabled(True)


class Recording(Cassette):
    """A recording, with the team that it was made with, as far as the requests tell."""

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
            return str(self.results[context.tool_call_id])

        return FunctionTool(
            tool["name"], tool.get("description") or "", tool["parameters"], result,
            strict_json_schema=False,
        )  # fmt: skip


async def play(path: Path, mode: Any) -> tuple[Any, list[dig.Finding]]:
    """What came of a cassette: the answers, the events of streams, the requests; and findings."""
    cassette = Recording(path)
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
    cassette.must_give_results()
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
