"""What wrapping adds to a superstep of LangGraph, beside the superstep, in CPU time of its thread.

Twenty nodes pass a count round a ring and do nothing else, so a message here is nothing but its
cost: a real one takes a model's seconds.
"""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

import anyio

import dig
from dig.runtime.wrap import Mode

from .measure import Table

TEXT = "Count how often each value occurs in your part, and say where you are not sure."
NODES = tuple(f"worker-{i}" for i in range(20))
WARM_UP = 50


class State(TypedDict):
    turn: int
    text: str


def wrapping(quick: bool) -> Table:
    """Time from one node to the next: a message, and LangGraph's step."""
    steps, rounds = (500, 2) if quick else (2_000, 5)
    ways: dict[str, tuple[Mode | None, bool]] = {
        "bare": (None, False),
        "observe": ("observe", False),
        "heal": ("heal", False),
        "heal, journal": ("heal", True),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, (mode, is_kept) in ways.items():
            taken[way] += anyio.run(_times, mode, is_kept, steps // rounds)
    figures = {way: (median(us), quantiles(us, n=100)[98]) for way, us in taken.items()}
    bare = figures["bare"]
    rows = [
        (way, f"{p50:.0f}", f"{p99:.0f}", f"{p50 - bare[0]:.0f}", f"{p99 - bare[1]:.0f}")
        for way, (p50, p99) in figures.items()
    ]
    return Table(
        f"A message between wrapped LangGraph nodes, {steps} steps, microseconds of CPU time",
        ("graph", "p50", "p99", "added p50", "added p99"),
        rows,
        "seven detectors; a bare step is LangGraph's own cost of a message",
    )


async def _times(mode: Mode | None, is_kept: bool, steps: int) -> list[float]:
    """How long each step took, in microseconds, after some to warm up."""
    moments: list[float] = []
    graph = _ring(steps + WARM_UP, moments)
    with TemporaryDirectory() as folder:
        if mode is not None:
            graph = dig.wrap(graph, mode=mode, journal=folder if is_kept else None)
        await graph.ainvoke({"turn": 0, "text": TEXT}, {"recursion_limit": 2 * steps + WARM_UP})
        dig.unwrap(graph)
    return [(after - before) * 1e6 for before, after in pairwise(moments)][WARM_UP:]


def _ring(turns: int, moments: list[float]) -> Any:
    from langgraph.graph import END, START, StateGraph

    async def work(state: State) -> dict[str, Any]:
        moments.append(time.thread_time())
        return {"turn": state["turn"] + 1, "text": f"{state['turn']}: {TEXT}"}

    def following(state: State) -> str:
        return END if state["turn"] >= turns else NODES[state["turn"] % len(NODES)]

    graph = StateGraph(State)
    for name in NODES:
        graph.add_node(name, work)
        graph.add_conditional_edges(name, following, [*NODES, END])
    graph.add_edge(START, NODES[0])
    return graph.compile()
