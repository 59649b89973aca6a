"""AgentChat over HTTP, with a server like llama.cpp: what weak models do is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("autogen_ext.models.openai", reason="pip install 'autogen-ext[openai]'")

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import (
    MaxMessageTermination,
    SourceMatchTermination,
    TextMentionTermination,
)
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient

from tests.llm.server import says

from . import model_scripts
from .autogen_teams import Watched
from .model_scripts import ANSWER, PRICE, QUESTION, REFUSED, Alarm, price, stock, you_are


def approved() -> Any:
    """The team ends with the approval of the critic, or at a limit."""
    return TextMentionTermination("APPROVE") | MaxMessageTermination(24)


def criticised() -> Any:
    """The team ends with the words of the critic."""
    return SourceMatchTermination(["critic"])


MODES = pytest.mark.parametrize("mode", ["observe", "heal"])


async def ask(url: str, wrap: Callable[[Any], Any], end: Any) -> Any:
    """The last words of a writer with two tools and a critic, or the kind of their error."""
    info = ModelInfo(
        vision=False, function_calling=True, json_output=False, family="unknown",
        structured_output=False,
    )  # fmt: skip
    client = OpenAIChatCompletionClient(
        model="scripted", base_url=url, api_key="none", model_info=info, max_retries=0
    )
    tools: dict[str, list[Any]] = {"writer": [price, stock], "critic": []}
    members = [
        AssistantAgent(name, client, tools=tools[name], system_message=you_are(name))
        for name in tools
    ]
    chat = wrap(RoundRobinGroupChat(members, termination_condition=end()))
    try:
        return (await chat.run(task=QUESTION)).messages[-1].content
    except RuntimeError as error:
        return type(error).__name__
    finally:
        await client.close()


def both(mode: str, end: Callable[[], Any] = approved, **script: Any) -> tuple[Any, set[Alarm]]:
    """Ask the team bare and wrapped: the answers are the same; return them, and the alarms."""

    def asked(url: str, wrap: Any) -> Any:
        return asyncio.run(ask(url, wrap, end))

    return model_scripts.both(Watched(mode), asked, **script)


@MODES
def test_a_healthy_team_is_quiet(mode: str) -> None:
    """The writer asks a tool, improves once, and is approved."""
    writer = [PRICE, says("A melon is cheap."), says(ANSWER)]
    critic = [says("Say how much."), says("APPROVE")]
    assert both(mode, writer=writer, critic=critic) == ("APPROVE", set())


@MODES
@pytest.mark.parametrize(("words", "how"), [("", "blank"), (QUESTION, "echo")])
def test_last_words_that_are_no_answer_are_found(mode: str, words: str, how: str) -> None:
    script = {"writer": [says(ANSWER)], "critic": [says(words)]}
    assert both(mode, criticised, **script)[1] == {("VOID", None, how)}


@MODES
def test_a_call_that_is_written_down_is_found(mode: str) -> None:
    """The template's calls are unknown to the server, so the text is the answer."""
    script = {"knows_calls": False, "writer": [says(ANSWER)], "critic": [PRICE]}
    assert both(mode, criticised, **script)[1] == {("VOID", None, "call")}


@MODES
def test_a_refused_request_is_found(mode: str) -> None:
    answer, found = both(mode, writer=[says(ANSWER)], critic=[REFUSED])
    assert (answer, found) == ("RuntimeError", {("FAIL", "request", "error")})


@MODES
def test_a_round_of_the_same_words_is_found(mode: str) -> None:
    """The writer says the same and the critic refuses the same, up to the limit of messages."""
    _, found = both(mode, writer=[says(ANSWER)], critic=[says("Shorter.")])
    assert found >= {("LOOP", None, None), ("FAIL", "request", "limit")}
