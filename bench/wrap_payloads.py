"""What wrapping costs when agents pass a lot: small messages, wide ones, and histories that grow.

Two agents pass a state to and fro, and do nothing else. Wide: the state is a table of 5,000 rows.
History: the state is a list of messages that each turn makes one longer.
LangGraph is measured too, where it is installed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any, TypedDict

import anyio

import dig

from .measure import Table
from .wrapped import TEXT, WAYS

TABLE = [{"id": i, "name": f"row {i}", "tags": ["a", "b"], "score": i / 2} for i in range(5_000)]

State = dict[str, Any]
Step = Callable[[State], State]


def small(state: State) -> State:
    """The next number, and a sentence."""
    return {"turn": state["turn"] + 1, "said": TEXT}


def wide(state: State) -> State:
    """A large table."""
    return {"turn": state["turn"] + 1, "said": [*TABLE]}


def history(state: State) -> State:
    """All messages, and one more."""
    said = state["said"] if isinstance(state.get("said"), list) else []
    return {"turn": state["turn"] + 1, "said": [*said, {"role": "ai", "content": TEXT}]}


def payloads(quick: bool) -> Table:
    """CPU time of a turn, alone, observed and healed."""
    turns, rounds = (60, 3) if quick else (200, 5)
    teams: dict[str, Callable[[Step, int], Any]] = {"plain callables": _plain}
    if find_spec("langgraph") is not None:
        teams["LangGraph"] = _langgraph
    rows = []
    for name, make in teams.items():
        for step in (small, wide, history):
            us = [_measured(make, step, turns, rounds, mode) for mode, _ in list(WAYS.values())[:3]]
            ratios = (f"{one / us[0]:.2f}" for one in us[1:])
            rows.append((f"{name}, {step.__name__}", *(f"{one:.0f}" for one in us), *ratios))
    return Table(
        f"A turn of an agent of a wrapped team, {turns} turns a request, microseconds of CPU time",
        ("team, state", "bare", "observe", "heal", "observe/bare", "heal/bare"), rows,
        f"wide: a list of {len(TABLE)} rows; history: a message longer with each turn",
    )  # fmt: skip


def _measured(
    make: Callable[[Step, int], Any], step: Step, turns: int, rounds: int, mode: Any
) -> float:
    """Microseconds of a turn, the median of some requests."""
    times = []
    for _ in range(rounds):
        team = make(step, turns)
        if mode is not None:
            team = dig.wrap(team, mode=mode)
        ask = team["ping"] if isinstance(team, dict) else partial(_invoked, team, turns)
        began = time.thread_time()
        anyio.run(ask, {"turn": 0, "said": TEXT})
        times.append((time.thread_time() - began) / turns * 1e6)
        dig.unwrap(team)
    return median(times)


def _plain(step: Step, turns: int) -> dict[str, Callable[[State], Awaitable[Any]]]:
    team: dict[str, Callable[[State], Awaitable[Any]]] = {}

    async def ping(state: State) -> State:
        while state["turn"] < turns:
            state = await team["pong"](state)
        return state

    async def pong(state: State) -> State:
        return step(state)

    team.update(ping=ping, pong=pong)
    return team


class _Channels(TypedDict, total=False):
    turn: int
    said: Any


async def _invoked(graph: Any, turns: int, state: State) -> Any:
    return await graph.ainvoke(state, {"recursion_limit": 2 * turns})


def _langgraph(step: Step, turns: int) -> Any:
    from langgraph.graph import END, START, StateGraph

    async def work(state: _Channels) -> Any:
        return step(dict(state))

    def following(state: _Channels) -> str:
        return END if state["turn"] >= turns else ("ping", "pong")[state["turn"] % 2]

    graph = StateGraph(_Channels)
    for name in ("ping", "pong"):
        graph.add_node(name, work)
        graph.add_conditional_edges(name, following, ["ping", "pong", END])
    graph.add_edge(START, "ping")
    return graph.compile()
