"""A budget of an AutoGen team: the entry agent speaks once more, and the chat ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat")

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage, TextMessage
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, RoundRobinGroupChat, Swarm
from autogen_core import CancellationToken
from autogen_core.models import RequestUsage

import dig
from dig.errors import SettingsError
from dig.graph.records import Record

from .test_budget import incidents


class Passer(BaseChatAgent):  # type: ignore[misc]
    """Hands over to another agent for ever, or answers when it is asked to."""

    def __init__(self, name: str, to: str, answer: str | None = None, tokens: int = 0) -> None:
        super().__init__(name, f"{name} hands over to {to}")
        self._to, self._answer, self._tokens = to, answer, tokens

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage, HandoffMessage)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        usage = RequestUsage(prompt_tokens=self._tokens, completion_tokens=0)
        if self._answer is not None and "used up" in str(messages):
            return Response(chat_message=TextMessage(content=self._answer, source=self.name))
        message = HandoffMessage(
            content=f"from {self.name}", target=self._to, source=self.name, models_usage=usage
        )
        return Response(chat_message=message)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        pass


def swarm(answer: str | None, **more: Any) -> Any:
    return Swarm([Passer("a", "b", answer, **more), Passer("b", "a", **more)])


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("kind", ["swarm", "round robin"])
def test_a_loop_is_stopped(mode: Any, kind: str) -> None:
    """The result ends with what the entry agent hands back; the team can be asked again."""
    records: list[Record] = []
    team = swarm("half")
    if kind == "round robin":
        end = TextMentionTermination("never") | MaxMessageTermination(500)
        team = RoundRobinGroupChat(
            [Passer("a", "b", "half"), Passer("b", "a")], termination_condition=end
        )
    dig.wrap(team, mode=mode, budget={"turns": 20}, sink=records.append)

    async def ask_twice() -> list[Any]:
        return [await team.run(task="?"), await team.run(task="?")]

    for result in asyncio.run(ask_twice()):
        sources = [message.source for message in result.messages]
        assert sources == ["user", *["a", "b"] * 10, "a"]
        assert result.messages[-1].content == "half"
        assert result.stop_reason == "stopped at 20 turns"
    session = dig.session_of(team)
    dig.unwrap(team)
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"] * 2
    assert session.statistics().partial == 2
    assert session.statistics().faults == 0


def test_an_agent_that_hands_nothing_back_fails_the_request() -> None:
    records: list[Record] = []
    team = dig.wrap(swarm(None), budget={"turns": 20}, sink=records.append)
    with pytest.raises(
        dig.BudgetExceeded, match="stopped at 20 turns, and `a` handed back no"
    ) as it:
        asyncio.run(team.run(task="?"))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert it.value.partial[-1] == {"handoff": "a", "said": "from b"}
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0
    assert session.statistics().open_turns == 0


def test_a_stream_is_stopped_too() -> None:
    """With the last turn in it."""
    team = dig.wrap(swarm("half"), budget={"turns": 4})

    async def read() -> list[Any]:
        return [piece async for piece in team.run_stream(task="?")]

    pieces = asyncio.run(read())
    dig.unwrap(team)
    assert pieces[-1].messages[-1].content == "half"
    assert len(pieces) == 1 + 4 + 1 + 1


def test_many_teams_have_a_budget_each(crowd: int) -> None:
    teams = [dig.wrap(swarm(f"half {n}"), budget={"turns": 4}) for n in range(crowd)]

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(team.run(task="?") for team in teams))

    results = asyncio.run(ask_all())
    for team in teams:
        dig.unwrap(team)
    assert [result.messages[-1].content for result in results] == [
        f"half {n}" for n in range(crowd)
    ]


def test_tokens_that_messages_tell_of_count() -> None:
    records: list[Record] = []
    team = dig.wrap(swarm("half", tokens=100), budget={"tokens": 300}, sink=records.append)
    result = asyncio.run(team.run(task="?"))
    dig.unwrap(team)
    assert [message.source for message in result.messages] == ["user", "a", "b", "a", "a"]
    assert result.stop_reason == "stopped at 300 tokens"


def test_a_planned_team_cannot_keep_a_budget() -> None:
    a, b = Passer("a", "b"), Passer("b", "a")
    graph = DiGraphBuilder().add_node(a).add_node(b).add_edge(a, b).build()
    with pytest.raises(SettingsError, match="to keep a budget: an AutoGen team cannot stop"):
        dig.wrap(GraphFlow([a, b], graph), budget={"turns": 3})
