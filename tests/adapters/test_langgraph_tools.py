"""LangGraph, wrapped with `tools=True`: calls of tools are events, also within subgraphs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from dig.detectors import standard
from dig.detectors.thresholds import Thresholds
from dig.graph.records import Emit
from dig.runtime import Setup

from .langgraph_watch import Watched


@tool  # type: ignore[untyped-decorator]
def weather(city: str) -> str:
    """The weather."""
    if city == "Atlantis":
        raise ValueError(city)
    return f"sunny in {city}"


def agent(*cities: str, times: int = 1) -> Any:
    """A model that asks for the weather of some cities, some times, and a node with the tool."""

    def model(state: MessagesState) -> dict[str, Any]:
        asked = sum(message.type == "ai" for message in state["messages"])
        if asked == times:
            return {"messages": [AIMessage("done")]}
        calls = [
            {"name": "weather", "args": {"city": city}, "id": f"{asked} {city}"} for city in cities
        ]
        return {"messages": [AIMessage("", tool_calls=calls)]}

    def following(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    built = StateGraph(MessagesState)
    built.add_node("model", model)
    built.add_node("tools", ToolNode([weather], handle_tool_errors=True))
    built.add_edge(START, "model")
    built.add_conditional_edges("model", following, ["tools", END])
    built.add_edge("tools", "model")
    return built.compile()


ASKED: Any = {"messages": [("user", "?")]}


def called(watched: Watched) -> list[tuple[str, Any]]:
    kinds = ("tool_call", "tool_result")
    emits = [one for one in watched.records if isinstance(one, Emit)]
    return [(one.type, one.payload) for one in emits if one.type in kinds]


@pytest.mark.parametrize("is_async", [False, True])
def test_each_call_of_a_tool_is_an_event_and_so_is_its_result(is_async: bool) -> None:
    """Two at once are two; the answer is as without a monitor, and nothing stays open."""
    watched, bare = Watched(tools=True), agent("Rome", "Oslo")
    graph = watched(agent("Rome", "Oslo"))
    answers = [
        asyncio.run(one.ainvoke(ASKED)) if is_async else one.invoke(ASKED) for one in (bare, graph)
    ]
    assert len({tuple(m.content for m in one["messages"]) for one in answers}) == 1
    watched.must_be_sound()
    assert sorted(called(watched), key=str) == [
        ("tool_call", {"city": "Oslo"}), ("tool_call", {"city": "Rome"}),
        ("tool_result", "sunny in Oslo"), ("tool_result", "sunny in Rome"),
    ]  # fmt: skip
    assert {one for one in watched.session.monitor.graph.agents if one.startswith("tool:")} == {
        "tool:weather"
    }


def test_a_tool_that_raises_is_told_as_a_notice() -> None:
    """The node goes on with what LangGraph makes of it."""
    watched = Watched(tools=True)
    watched(agent("Atlantis")).invoke(ASKED)
    watched.must_be_sound()
    assert called(watched) == [("tool_call", {"city": "Atlantis"})]
    errors = [one.payload for one in watched.records if isinstance(one, Emit) and one.by]
    assert {"error": "ValueError: Atlantis"} in errors


def test_tools_within_a_subgraph_are_seen_so_a_loop_of_them_is_found() -> None:
    """The same call five times is LOOP; without the option a subgraph is one node."""
    for shows in (True, False):
        built = StateGraph(MessagesState)
        built.add_node("inner", agent("Rome", times=5))
        built.add_edge(START, "inner")
        setup = Setup(detectors=standard, limits=Thresholds().limits)
        watched = Watched(setup=setup, tools=shows)
        watched(built.compile()).invoke(ASKED)
        assert len(called(watched)) == (10 if shows else 0)
        assert ("LOOP" in watched.patterns) == shows


def test_without_the_option_tools_are_part_of_their_node() -> None:
    """It is off by default."""
    watched = Watched()
    watched(agent("Rome")).invoke(ASKED)
    watched.must_be_sound()
    assert called(watched) == []
