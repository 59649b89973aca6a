"""LangGraph, wrapped: what stands in place of a graph's methods looks like them."""

from __future__ import annotations

import asyncio
from inspect import isfunction
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from .framework_signatures import Pair, must_look_alike, must_take_keywords, tapped
from .harness import Script, play
from .langgraph_asked import SCENARIOS
from .langgraph_watch import Watched


def replaced(graph: Any) -> list[Pair]:
    """The methods that the class of a monitored copy has of its own."""
    twin = type(Watched()(graph))
    own = (name for name, what in vars(twin).items() if isfunction(what))
    return [Pair(getattr(type(graph), name), getattr(twin, name)) for name in own]


def test_what_is_replaced_has_the_signature_of_what_was_there() -> None:
    """Names, kinds and defaults of parameters are the same, and so is what has to be awaited."""
    pairs = replaced(SCENARIOS[0].build(Script()))
    assert pairs and not [what for pair in pairs for what in pair.differences()]


def test_what_is_tapped_looks_like_what_was_there() -> None:
    """So does what is replaced by a tap, if anything is."""
    with tapped() as pairs:
        play(SCENARIOS[0], Watched())
    if pairs:
        must_look_alike(Watched, SCENARIOS)
        must_take_keywords(Watched, SCENARIOS)


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("method", ["invoke", "ainvoke", "stream", "astream"])
def test_a_graph_can_be_called_by_name(method: str, mode: Any) -> None:
    """Each argument may be given by its name, as without a monitor."""

    def call(graph: Any) -> Any:
        given = {"input": {"messages": [("user", "?")]}, "config": None, "stream_mode": "values"}
        return getattr(graph, method)(**given)

    async def told(graph: Any) -> str:
        result = call(graph)
        if method == "ainvoke":
            return str(await result)
        if method == "astream":
            return str([piece async for piece in result])
        return str([*result] if method == "stream" else result)

    def graph() -> Any:
        return echo()

    assert asyncio.run(told(Watched(mode)(graph()))) == asyncio.run(told(graph()))


def echo() -> Any:
    from typing import TypedDict

    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        messages: list[Any]

    built: Any = StateGraph(State)
    built.add_node("ann", lambda state: {"messages": [*state["messages"], "done"]})
    built.add_edge(START, "ann").add_edge("ann", END)
    return built.compile()
