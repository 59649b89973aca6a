"""OpenAI agents over HTTP, with a server like llama.cpp: what weak models do is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import APIStatusError, AsyncOpenAI

from tests.llm.server import says

from . import model_scripts
from .model_scripts import (
    ANSWER,
    CASES,
    HEALTHY,
    PRICE,
    QUESTION,
    TRANSFER,
    Alarm,
    price,
    stock,
    you_are,
)
from .openai_agents_teams import Watched

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])


def shop(client: AsyncOpenAI, *, has_sales: bool) -> Agent[Any]:
    """A desk with two tools; or one that hands on to sales, which has them."""
    model = OpenAIChatCompletionsModel("m", client)
    tools: list[Any] = [function_tool(price), function_tool(stock)]
    if not has_sales:
        return Agent("desk", instructions=you_are("desk"), model=model, tools=tools)
    sales: Any = Agent("sales", instructions=you_are("sales"), model=model, tools=tools)
    return Agent("desk", instructions=you_are("desk"), model=model, handoffs=[sales])


async def ask(url: str, wrap: Callable[[Any], Any], has_sales: bool) -> Any:
    """What the team answers, or the kind of its error."""
    async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
        team = wrap(shop(client, has_sales=has_sales))
        try:
            return (await Runner.run(team, QUESTION, max_turns=20)).final_output
        except APIStatusError as error:
            return type(error).__name__


def both(mode: str, has_sales: bool = False, **script: Any) -> tuple[Any, set[Alarm]]:
    """Ask the team bare and wrapped: the answers are the same; return them, and the alarms."""

    def asked(url: str, wrap: Any) -> Any:
        return asyncio.run(ask(url, wrap, has_sales))

    return model_scripts.both(Watched(mode, tools=True), asked, **script)


@MODES
def test_a_healthy_agent_is_quiet(mode: str) -> None:
    """Two tools and an answer."""
    assert both(mode, **HEALTHY) == (ANSWER, set())


@MODES
def test_a_healthy_handoff_is_quiet(mode: str) -> None:
    assert both(mode, True, desk=[TRANSFER], sales=[PRICE, says(ANSWER)]) == (ANSWER, set())


@MODES
@pytest.mark.parametrize("case", CASES)
def test_what_a_weak_model_does_is_found(mode: str, case: str) -> None:
    """An alarm of the right kind, and none of another."""
    script, alarm = CASES[case]
    assert both(mode, **script)[1] == {alarm}


@MODES
def test_a_handoff_that_is_said_and_not_done_is_found(mode: str) -> None:
    """The answer is the text of the call."""
    answer, found = both(mode, True, knows_calls=False, desk=[TRANSFER])
    assert "transfer_to_sales" in answer and found == {("VOID", None, "call")}


@MODES
def test_an_empty_answer_behind_a_handoff_is_found(mode: str) -> None:
    assert both(mode, True, desk=[TRANSFER], sales=[PRICE, says("")])[1] == {
        ("VOID", None, "blank")
    }
