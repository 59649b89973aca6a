"""LangGraph, wrapped: graphs that nobody has thought of, by hypothesis."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command, Send

from .harness import Scenario, Script, play
from .langgraph_asked import QUESTION, thread
from .langgraph_teams import graph, node
from .langgraph_watch import Watched

NAMES = ("a", "b", "c", "d", "e")

names = st.sampled_from(NAMES)
gotos = st.lists(st.tuples(st.sampled_from(["goto", "send"]), names), max_size=3)
moves = st.one_of(st.just("speak"), gotos.filter(bool), gotos.filter(bool), gotos.filter(bool))
# If two fail in one step, LangGraph raises whichever error a set of tasks has first.
plans = st.fixed_dictionaries(
    {
        name: st.lists(moves | st.just("fail") if name == "e" else moves, max_size=3)
        for name in NAMES
    }
)
edges = st.lists(st.tuples(names, names), max_size=4, unique=True)
joins = st.lists(st.tuples(st.lists(names, min_size=2, max_size=3, unique=True), names), max_size=2)


def team(plan: dict[str, Any], static: Any, joined: Any, kept: bool, stream: bool) -> Scenario:
    """A team whose nodes do one planned thing after the other; then they only speak."""

    def act(name: str) -> Any:
        def move(state: Any, number: int) -> Any:
            todo: Any = plan[name][number - 1] if number <= len(plan[name]) else "speak"
            if todo == "fail":
                raise ValueError(f"{name} failed")
            if todo == "speak":
                return {"done": [f"{name}{number}"]}
            goto = [to if how == "goto" else Send(to, {"done": [name]}) for how, to in todo]
            return Command(goto=goto, update={"done": [name]} if len(goto) > 1 else None)

        return move

    def build(script: Script) -> Any:
        nodes = {name: node(script, name, act(name)) for name in NAMES}
        built = graph(script, [], [(START, "a"), *static, *joined], **nodes)
        return built.compile(checkpointer=InMemorySaver() if kept else None)

    async def drive(wrapped: Any) -> Any:
        config = thread(recursion_limit=8)
        if stream:
            return [one async for one in wrapped.astream(QUESTION, config, stream_mode="updates")]
        return await wrapped.ainvoke(QUESTION, config)

    return Scenario("random", build, drive)


@given(plans, edges, joins, st.booleans(), st.booleans(), st.integers(0, 99), st.integers(1, 90))
def test_any_graph_runs_as_before_and_its_trace_is_sound(
    plan: Any, static: Any, joined: Any, kept: bool, stream: bool, seed: int, step: int
) -> None:
    scenario, watched = team(plan, static, joined, kept, stream), Watched()
    bare = play(scenario, seed=seed)
    assert play(scenario, watched, seed=seed) == bare
    assert watched.leaves_nothing_open()
    watched.must_be_sound()

    healed = Watched("heal")
    outcome = play(scenario, healed, seed=seed)
    assert healed.patterns or outcome == bare
    assert healed.session.statistics().faults == 0
    assert healed.session.statistics().open_turns == 0

    cancelled = Watched()
    assert play(scenario, cancelled, seed=seed, cancel_at=step) == play(
        scenario, seed=seed, cancel_at=step
    )
    assert cancelled.leaves_nothing_open()
