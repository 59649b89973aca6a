"""LangGraph, wrapped: what a session leaves, and what the docs and the example show."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langgraph.graph import END, START, StateGraph
from langgraph.pregel._loop import SyncPregelLoop

import dig
from dig.graph.records import Emit

from .conformance import example, lines_of
from .harness import Scenario, Script, play
from .langgraph_asked import ask, ask_twice
from .langgraph_teams import State, by_enum, cached_fan, fan, graph
from .langgraph_watch import Watched, seats


def test_overlapping_requests_are_problems_of_their_own_and_turns_are_instances() -> None:
    async def at_once(wrapped: Any) -> Any:
        return await asyncio.gather(*(wrapped.ainvoke({"done": [str(i)]}) for i in range(3)))

    watched = Watched()
    play(Scenario("fan", fan, at_once), watched)
    assert watched.session.statistics().requests == 3
    assert {"a", "a#2", "a#3"} <= seats(watched.session.monitor.graph)
    assert watched.patterns == []
    assert watched.leaves_nothing_open()
    watched.must_be_sound()


def test_nodes_that_an_enum_names_are_agents_by_their_values() -> None:
    """Edges, gotos and sends between them are told, so that nothing is found in a healthy graph."""
    watched = Watched()
    play(Scenario("by enum", by_enum, ask), watched)
    assert seats(watched.session.monitor.graph) >= {"split", "work", "check", "join", "last"}
    assert watched.patterns == []
    watched.must_be_sound()


def test_all_that_a_result_from_a_cache_starts_has_one_origin() -> None:
    """What two nodes made of it meets in a third, as if the first had run."""
    watched = Watched()
    play(Scenario("cached fan", cached_fan, ask_twice), watched)
    statistics = watched.session.statistics()
    assert (statistics.requests, watched.patterns) == (2, [])
    watched.must_be_sound()


@pytest.mark.parametrize("most", [1, 4])
def test_what_a_node_sends_to_one_that_begins_in_the_same_step_starts_its_next_run(
    most: int,
) -> None:
    """One after the other, or on threads, `a` may have ended before `b` has begun."""
    watched = Watched()
    edges = [(START, "a"), (START, "b"), ("a", "b"), ("b", "c")]
    built = graph(Script(), (), edges, **{name: lambda state: {"done": [1]} for name in "abc"})
    wrapped = watched(built.compile())
    assert len(wrapped.invoke({"done": []}, {"max_concurrency": most})["done"]) == 5
    assert watched.session.statistics().requests == 1
    assert watched.patterns == []
    assert watched.leaves_nothing_open()
    watched.must_be_sound()


def test_a_join_may_lead_to_the_end() -> None:
    """LangGraph has no channel for it: the graph ends when nothing else is left."""
    watched = Watched()
    wrapped = watched(
        graph(Script(), "ab", [(START, "a"), (START, "b"), (["a", "b"], END)]).compile()
    )
    asyncio.run(wrapped.ainvoke({"done": []}))
    assert watched.patterns == []
    watched.must_be_sound()


def test_the_example_shows_both_failures_and_both_cures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    round_and_round, paid, early, whole = example("langgraph", tmp_path, capsys, "ER", "ET")
    assert round_and_round.startswith("GraphRecursionError")
    assert paid == "Nobody else will: refunds pays it back."
    assert early == "A text about rain, please."
    assert whole == "A text after a check of the facts (one review is missing)."


def straight() -> Any:
    """A graph of two nodes that need no loop."""
    built: StateGraph[Any] = StateGraph(State)
    for name in "ab":
        built.add_node(name, lambda state, name=name: {"done": [name]})
    built.add_edge(START, "a")
    built.add_edge("a", "b")
    return built.compile()


def loops() -> int:
    """How many of LangGraph's loops there are in memory."""
    return sum(type(one) is SyncPregelLoop for one in gc.get_objects())


def test_a_request_leaves_nothing_that_only_the_garbage_collector_frees() -> None:
    """LangGraph's loop, which holds the state, goes with its last reference, as it does alone."""
    wrapped = dig.wrap(straight())
    gc.disable()
    try:
        before = loops()
        wrapped.invoke({"done": []})
        assert loops() == before
    finally:
        gc.enable()


def test_the_lines_in_the_docs_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, *_ = lines_of("wrapping-langgraph.md")
    names: dict[str, Any] = {"graph": straight()}
    monkeypatch.chdir(tmp_path)
    exec(lines, names)
    assert names["answer"]["done"] == ["a", "b"]
    assert len([*tmp_path.glob("runs/*/result.json")]) == 1


class History(TypedDict, total=False):
    """A state without reducers: each node returns all of it."""

    history: list[dict[str, str]]
    other: list[int]


@pytest.mark.parametrize("in_place", [False, True])
def test_of_a_history_that_is_returned_whole_the_trace_tells_what_is_new(in_place: bool) -> None:
    """A list that was changed in place is told whole: the adapter cannot see what is new in it."""

    def says(name: str, state: History) -> History:
        before, new = state["history"], [{"by": name}]
        if in_place:
            before += new
            return {"history": before}
        return {"history": [*before, *new], "other": [7]}

    built = StateGraph(History)
    for name in ("one", "two"):
        built.add_node(name, partial(says, name))
    built.add_edge(START, "one")
    built.add_edge("one", "two")
    asked = {"by": "user"}
    watched = Watched()
    graph = watched(built.compile())
    assert len(graph.invoke({"history": [asked]})["history"]) == 3
    watched.must_be_sound()
    emitted = [one for one in watched.records if isinstance(one, Emit) and not one.final]
    told = [one.payload for one in emitted]
    if in_place:
        assert told[-1] == {"history": [asked, {"by": "one"}, {"by": "two"}]}
    else:
        new = {"$given": 2, "$new": [{"by": "two"}]}
        assert told[-1] == {"history": new, "other": [7]}
