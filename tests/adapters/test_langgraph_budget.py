"""A budget of a graph: the entry node runs once in place of the node without budget."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send

import dig
from dig.graph.records import IncidentRow, Record

from .test_budget import incidents

LONG = {"recursion_limit": 100}


class State(TypedDict, total=False):
    """What the nodes share."""

    done: Annotated[list[str], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]


def is_asked(state: Any) -> bool:
    """Whether the note of the last turn is in front of a node."""
    return "used up" in str(state.get("messages", []))


def swarm(answer: str | None, **compiled: Any) -> Any:
    """Two nodes that hand over to each other for ever, by commands."""

    def a(state: State) -> Any:
        if answer is not None and is_asked(state):
            return {"done": [answer]}
        return Command(goto="b", update={"done": ["a"]} if answer else None)

    async def b(state: State) -> Any:
        return Command(goto="a", update={"done": ["b"]})

    graph = StateGraph(State)
    graph.add_node("a", a, destinations=("b",))
    graph.add_node("b", b, destinations=("a",))
    graph.add_edge(START, "a")
    return graph.compile(**compiled)


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("checkpointer", [None, InMemorySaver()])
def test_a_loop_of_handoffs_is_stopped(mode: Any, checkpointer: Any) -> None:
    """The graph ends with what it has, and what the entry node hands back."""
    records: list[Record] = []
    team = dig.wrap(
        swarm("half", checkpointer=checkpointer), mode=mode, budget={"turns": 20},
        sink=records.append,
    )  # fmt: skip
    config = {**LONG, "configurable": {"thread_id": mode}}
    result = asyncio.run(team.ainvoke({"done": []}, config))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert result["done"] == ["a", "b"] * 10 + ["half"]
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    assert session.result().partial
    assert session.statistics().faults == 0


def test_a_node_that_hands_nothing_back_fails_the_request() -> None:
    records: list[Record] = []
    team = dig.wrap(swarm(None), budget={"turns": 20}, sink=records.append)
    with pytest.raises(
        dig.BudgetExceeded, match="stopped at 20 turns, and `a` handed back no"
    ) as it:
        asyncio.run(team.ainvoke({"done": []}, LONG))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert it.value.partial[-1] == {"done": ["b"]}
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0
    assert session.statistics().open_turns == 0


@pytest.mark.parametrize("way", ["astream", "stream", "invoke"])
def test_streams_and_threads_are_stopped_too(way: str) -> None:
    """A stream shows the last turn under the name of the node that has none."""
    graph = swarm("half")
    graph.nodes["b"].bound.func = graph.nodes["b"].bound.func or (
        lambda state: Command(goto="a", update={"done": ["b"]})
    )
    team = dig.wrap(graph, budget={"turns": 3})

    async def collect() -> list[Any]:
        return [piece async for piece in team.astream({"done": []}, LONG, stream_mode="values")]

    if way == "astream":
        last = asyncio.run(collect())[-1]
    elif way == "stream":
        last = [*team.stream({"done": []}, LONG, stream_mode="values")][-1]
    else:
        last = team.invoke({"done": []}, LONG)
    dig.unwrap(team)
    assert last["done"] == ["a", "b", "a", "half"]


def test_many_requests_have_a_budget_each(crowd: int) -> None:
    team = dig.wrap(swarm("half"), budget={"turns": 6})

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(team.ainvoke({"done": [str(n)]}, LONG) for n in range(crowd)))

    results = asyncio.run(ask_all())
    session = dig.session_of(team)
    dig.unwrap(team)
    assert [result["done"] for result in results] == [
        [str(n), *["a", "b"] * 3, "half"] for n in range(crowd)
    ]
    assert session.statistics().partial == crowd


def test_branches_that_have_no_budget_do_nothing() -> None:
    """Also where `Send` starts them, and a static edge follows the entry node."""

    def plan(state: State) -> Any:
        return {"done": ["half" if is_asked(state) else "plan"]}

    def work(packet: Any) -> Any:
        return {"done": [packet]}

    def split(state: State) -> list[Send]:
        return [Send("work", name) for name in "123456"]

    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("work", work)
    graph.add_node("merge", lambda state: {"done": ["merged"]})
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", split, ["work"])
    graph.add_edge("work", "merge")
    team = dig.wrap(graph.compile(), budget={"turns": 4})
    result = asyncio.run(team.ainvoke({"done": []}))
    dig.unwrap(team)
    assert sorted(result["done"]) == ["1", "2", "3", "half", "plan"]


def test_tokens_of_models_count() -> None:
    """As their messages tell them."""
    usage: Any = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
    messages = iter([AIMessage("hm", usage_metadata=usage)] * 9)
    model = GenericFakeChatModel(messages=messages)

    async def a(state: State) -> Any:
        if is_asked(state):
            return {"done": ["half"]}
        await model.ainvoke([HumanMessage("?")])
        return Command(goto="b")

    async def b(state: State) -> Any:
        return Command(goto="a")

    graph = StateGraph(State)
    graph.add_node("a", a, destinations=("b",))
    graph.add_node("b", b, destinations=("a",))
    graph.add_edge(START, "a")
    records: list[Record] = []
    team = dig.wrap(graph.compile(), budget={"tokens": 300}, sink=records.append)
    assert asyncio.run(team.ainvoke({"done": []}, LONG)) == {"done": ["half"], "messages": []}
    dig.unwrap(team)
    stopped = [row for row in incidents(records) if row["stage"] == "stopped"]
    assert [row["spent"] for row in stopped] == [300]
    assert not [row for row in records if isinstance(row, IncidentRow) and row.what == "failed"]
