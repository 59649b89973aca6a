"""LangChain's `create_agent` over HTTP, with a server like llama.cpp: what weak models do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("langchain_openai", reason="pip install langchain langchain-openai")
pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from openai import APIStatusError

from tests.llm.llama import Llama
from tests.llm.server import calls, serving

from . import model_scripts
from .langgraph_teams import Watched
from .model_scripts import (
    ANSWER,
    CASES,
    HEALTHY,
    QUESTION,
    STOCK,
    Alarm,
    price,
    says_in_turn,
    stock,
    you_are,
)

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])


def breaks(item: str) -> str:
    """How many of these there are."""
    raise KeyError(item)


def ask(url: str, wrap: Callable[[Any], Any], tools: Sequence[Any], limit: int) -> Any:
    """What an agent with tools answers, or the kind of its error."""
    model = ChatOpenAI(model="m", base_url=url, api_key="none", max_retries=0)
    graph = create_agent(model, [tool(each) for each in tools], system_prompt=you_are("desk"))
    asked = {"messages": [("user", QUESTION)]}
    try:
        return wrap(graph).invoke(asked, {"recursion_limit": limit})["messages"][-1].content
    except (APIStatusError, GraphRecursionError, KeyError) as error:
        return type(error).__name__
    finally:
        model.root_client.close()


def both(mode: str, *tools: Any, limit: int = 60, **script: Any) -> tuple[Any, set[Alarm]]:
    """Ask the agent bare and wrapped: the answers are the same; return them, and the alarms."""

    def asked(url: str, wrap: Any) -> Any:
        return ask(url, wrap, tools or (price, stock), limit)

    return model_scripts.both(Watched(mode, tools=True), asked, **script)


@MODES
def test_a_healthy_agent_is_quiet(mode: str) -> None:
    """Two tools and an answer."""
    assert both(mode, **HEALTHY) == (ANSWER, set())


@MODES
@pytest.mark.parametrize("case", CASES)
def test_what_a_weak_model_does_is_found(mode: str, case: str) -> None:
    """An alarm of the right kind, and none of another."""
    script, alarm = CASES[case]
    assert both(mode, **script)[1] == {alarm}


def test_the_note_about_a_loop_of_calls_reaches_the_model() -> None:
    """A tool reads no notes, so the asker is told."""
    script, _ = CASES["the same call without an end"]
    watched = Watched("heal", tools=True)
    with serving(Llama(says_in_turn(**script))) as server:
        ask(server.url, watched, (price, stock), 60)
    watched.must_be_sound()
    messages = [message for request in server.requests for message in request["messages"]]
    notes = [message["content"] for message in messages if message.get("name") == "monitor"]
    assert notes and notes[0].startswith("This was said 5 times now")


@MODES
def test_a_loop_that_ends_at_a_limit_is_found_and_so_is_the_end(mode: str) -> None:
    """The exception is no answer: nothing that was found before is mended by it."""
    answer, found = both(mode, limit=14, desk=[STOCK])
    assert answer == "GraphRecursionError"
    assert found == {("LOOP", None, None), ("FAIL", "request", "limit")}


@MODES
def test_a_tool_that_raises_ends_the_request_with_an_error(mode: str) -> None:
    answer, found = both(mode, breaks, desk=[calls(("breaks", {"item": "kiwi"}))])
    assert (answer, found) == ("KeyError", {("FAIL", "request", "error")})
