"""Faults around the node functions of a LangGraph graph: a game day before it is wrapped."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langgraph.graph import END, START, StateGraph

import dig
from dig.faults import Fault, around
from dig.graph.records import End


class Letter(TypedDict, total=False):
    """What the nodes write."""

    question: str
    draft: str
    final: str


async def write(state: Letter) -> Letter:
    return {"draft": f"about {state['question']}"}


async def check(state: Letter) -> Letter:
    return {"final": f"checked: {state.get('draft')}"}


def built(nodes: dict[str, Any]) -> Any:
    """The graph of two nodes, one after the other."""
    graph = StateGraph(Letter)
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_edge(START, "write")
    graph.add_edge("write", "check")
    graph.add_edge("check", END)
    return graph.compile()


@pytest.mark.parametrize(
    ("kind", "final"),
    [
        ("silent", "checked: None"),
        ("corrupt", "checked: \ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"),
        ("crash", "write has failed"),
    ],
)
def test_a_node_can_be_the_target(kind: str, final: str) -> None:
    """What it does comes out of the graph, and the monitor sees the failure."""
    seen: list[Any] = []

    async def day() -> str:
        nodes: dict[str, Any] = {"write": write, "check": check}
        with around(nodes, [Fault(kind=kind, target="write")]) as faulty:
            graph = dig.wrap(built(nodes), sink=seen.append)
            try:
                answer: Letter = await graph.ainvoke({"question": "lunch"})
                return answer["final"]
            except RuntimeError as error:
                return str(error)
            finally:
                dig.unwrap(graph)
                assert [act.agent for act in faulty.acts] == ["write"]

    assert asyncio.run(day()) == final
    failed = [record for record in seen if isinstance(record, End) and record.error]
    assert bool(failed) == (kind == "crash")
