"""What wrapping adds to a superstep of LangGraph, beside the superstep, in CPU time of its thread.

Twenty nodes pass a count round a ring and do nothing else, so a message here is nothing but its
cost: a real one takes a model's seconds.
"""

from __future__ import annotations

import time
from typing import Any, TypedDict

from dig.adapters import Mode

from .wrapped import TEXT, Say, between, monitored, small

NODES = tuple(f"worker-{i}" for i in range(20))
WARM_UP = 50


class State(TypedDict):
    turn: int
    said: Any


async def times(mode: Mode | None, is_kept: bool, steps: int, say: Say = small) -> list[float]:
    """How long each step took, in microseconds, after some to warm up."""
    moments: list[float] = []
    graph = ring(steps + WARM_UP, moments, say)
    with monitored(graph, mode, is_kept) as graph:
        await graph.ainvoke({"turn": 0, "said": TEXT}, {"recursion_limit": 2 * steps + WARM_UP})
    return between(moments)[WARM_UP:]


def ring(turns: int, moments: list[float], say: Say) -> Any:
    from langgraph.graph import END, START, StateGraph

    async def work(state: State) -> dict[str, Any]:
        moments.append(time.thread_time())
        return {"turn": state["turn"] + 1, "said": say(state["turn"], state["said"])}

    def following(state: State) -> str:
        return END if state["turn"] >= turns else NODES[state["turn"] % len(NODES)]

    graph = StateGraph(State)
    for name in NODES:
        graph.add_node(name, work)
        graph.add_conditional_edges(name, following, [*NODES, END])
    graph.add_edge(START, NODES[0])
    return graph.compile()
