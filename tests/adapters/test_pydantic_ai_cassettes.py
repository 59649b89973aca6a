"""Recorded model traffic in agents of Pydantic AI: wrapped is as bare, and raises no alarm.

The traffic is that of OpenAI agents; what hands over there is here an output function, which
Pydantic AI ends a run with: it asks the next agent, with the conversation so far.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

from pydantic_ai import Agent, RunContext, Tool, ToolOutput
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

import dig

from .cassettes import CASSETTES, NEEDS_CASSETTES, Cassette

pytestmark = NEEDS_CASSETTES


class Recording(Cassette):
    """A recording, with a team for it.

    Attributes:
        agents: The agents by name.
        is_streamed: Whether the models stream.
    """

    is_streamed = False

    def team(self) -> dict[str, Agent[Any, Any]]:
        """The agents by their instructions; an agent goes by the tool that hands over to it."""
        self.agents: dict[str, Agent[Any, Any]] = {}
        agents: dict[str, Agent[Any, Any]] = {}
        for request in self.requests:
            words = request["instructions"]
            if words in agents:
                continue
            calls = [item for item in request["input"] if item.get("type") == "function_call"]
            name = calls[-1]["name"].removeprefix("transfer_to_") if calls else "entry"
            hands = [tool["name"] for tool in request["tools"] if "_to_" in tool["name"]]
            provider = OpenAIProvider(openai_client=self.client)
            agents[words] = self.agents[name] = Agent(
                OpenAIResponsesModel(request["model"], provider=provider), name=name,
                instructions=words, output_type=[str, *map(self._hand_over, hands)],
                tools=[self._tool(tool) for tool in request["tools"] if tool["name"] not in hands],
            )  # fmt: skip
        return agents

    def _hand_over(self, tool: str) -> ToolOutput[Any]:
        async def hand_over(context: RunContext[Any]) -> str:
            agent = self.agents[tool.removeprefix("transfer_to_")]
            return str(await answer(agent, None, context.messages[:-1], self.is_streamed))

        return ToolOutput(hand_over, name=tool)

    def _tool(self, tool: dict[str, Any]) -> Tool[Any]:
        async def result(context: RunContext[Any], **arguments: Any) -> str:
            return str(self.results[context.tool_call_id])

        return Tool.from_schema(
            result, tool["name"], tool.get("description") or "", tool["parameters"], takes_ctx=True
        )


async def answer(agent: Any, words: Any, history: Any, is_streamed: bool) -> Any:
    async def read(context: Any, events: Any) -> None:
        async for _ in events:
            pass

    result = await agent.run(
        words, message_history=history, event_stream_handler=read if is_streamed else None
    )
    return result.output


async def play(path: Path, mode: Any) -> tuple[Any, list[dig.Finding]]:
    """What came of a cassette: the answers and the requests; and the findings."""
    cassette = Recording(path)
    team, seen, findings = cassette.team(), list[Any](), list[dig.Finding]()
    for question in cassette.questions():
        members = cassette.agents
        if mode is not None:
            dig.wrap(members, mode=mode, tools=True)
        cassette.is_streamed = bool(question["stream"])
        words = question["input"][-1]["content"]
        entry = team[question["instructions"]]
        seen.append(await answer(entry, words, None, cassette.is_streamed))
        if mode is not None:
            session = dig.session_of(members)
            findings += session.findings
            assert session.statistics().faults == 0
            dig.unwrap(members)
    assert len(cassette.asked) == len(cassette.requests)
    await cassette.client.close()
    return (seen, cassette.asked), findings


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("path", CASSETTES, ids=[path.stem for path in CASSETTES])
def test_a_recorded_run_is_the_same_wrapped_and_raises_no_alarm(path: Path, mode: str) -> None:
    bare, _ = asyncio.run(play(path, None))
    wrapped, findings = asyncio.run(play(path, mode))
    assert wrapped == bare
    assert [finding for finding in findings if finding.is_alarm] == []
    assert all(bare[0])
