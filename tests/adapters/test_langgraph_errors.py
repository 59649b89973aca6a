"""LangGraph, wrapped: whose an error is, what was called off, and how a request failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langgraph import types
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

from dig import Watch
from dig.detectors import standard
from dig.detectors.mended import Mending
from dig.detectors.thresholds import Thresholds
from dig.graph.records import End, IncidentRow
from dig.runtime.setup import Setup

from .conformance import Failing
from .harness import Script, play
from .langgraph_teams import (
    HAS_HANDLERS,
    QUESTION,
    State,
    Watched,
    failing,
    graph,
    half_join,
    handled,
    node,
    retried,
    team,
)

IS_ASYNC = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
IN_A_GRAPH = pytest.mark.parametrize("inside", [False, True])


def plain(**nodes: Callable[[Any], Any]) -> StateGraph[Any]:
    """`writer` waits for two nodes, which begin at once."""
    built: StateGraph[Any] = StateGraph(State)
    for name, act in nodes.items():
        built.add_node(name, act)
        built.add_edge(START, name)
    built.add_node("writer", lambda state: {"done": ["writer"]})
    built.add_edge([*nodes], "writer")
    return built


def hotels(state: Any) -> Any:
    raise ValueError("the hotel service answered 503")


def flights(state: Any) -> Any:
    return {"done": ["LH1"]}


def call(graph: Any, is_async: bool, *config: Any) -> Any:
    return asyncio.run(graph.ainvoke(QUESTION, *config)) if is_async else graph.invoke(
        QUESTION, *config
    )  # fmt: skip


@IS_ASYNC
def test_a_node_that_raises_is_blamed_and_the_join_behind_it_never_ran(is_async: bool) -> None:
    """The request has failed by its error, and `writer` has no activation."""
    watched = Watched()
    with pytest.raises(ValueError, match="503"):
        call(watched(plain(hotels=hotels, flights=flights).compile()), is_async)
    error = "ValueError: the hotel service answered 503"
    assert watched.errors() == {
        "hotels": (error, None, False), "__end__": (error, "hotels", False)
    }  # fmt: skip
    assert "writer" not in watched.ran() and watched.answers() == []
    assert watched.failed() == [("error", "hotels")]
    assert watched.patterns == ["FAIL", "FAIL"]
    watched.must_be_over()


def test_a_node_that_is_tried_again_makes_its_failure_good() -> None:
    """Each attempt that raised says so, and the request has an answer and no failure."""
    watched = Watched()
    play(team(retried), watched)
    errors = [row.error for row in watched.rows(End) if row.error]
    assert errors == ["ConnectionError: try again"] * 2
    assert watched.failed() == [] and len(watched.answers()) == 1
    assert [(one.pattern, one.stage) for one in watched.session.findings] == [("FAIL", "turn")] * 2
    watched.must_be_over()


def test_a_node_that_gives_up_after_its_attempts_is_blamed() -> None:
    """The last attempt is the one whose error ended the request."""

    def build(script: Script) -> Any:
        def fail(state: Any, number: int) -> Any:
            raise ConnectionError("try again")

        built = graph(script, "a", [(START, "a"), ("a", "b")])
        policy = RetryPolicy(
            initial_interval=0.1, jitter=False, max_attempts=3, retry_on=ConnectionError
        )
        built.add_node("b", node(script, "b", fail), retry_policy=policy)
        return built.compile()

    watched = Watched()
    play(team(build), watched)
    assert watched.failed() == [("error", "b")]
    (incident,) = [row for row in watched.rows(IncidentRow) if row.what == "request_failed"]
    raised = [row for row in watched.rows(End) if row.error and not row.because]
    assert len(raised) == 3 and incident.detail["activation"] == raised[-1].activation
    watched.must_be_over()


@pytest.mark.skipif(not HAS_HANDLERS, reason="LangGraph has error handlers since 1.2")
def test_a_node_that_takes_care_of_an_error_saves_the_request() -> None:
    """It takes up what the node was given, so that the failure is made good."""
    watched = Watched()
    play(team(handled), watched)
    assert watched.errors() == {"b": ("ValueError: no such city", None, False)}
    assert watched.failed() == [] and len(watched.answers()) == 1
    assert [(one.pattern, one.stage) for one in watched.session.findings] == [("FAIL", "turn")]
    assert not watched.session.monitor.graph.activations
    watched.must_be_sound()


@IS_ASYNC
@IN_A_GRAPH
def test_a_node_in_a_graph_that_is_a_node_is_blamed_if_it_is_an_agent(
    is_async: bool, inside: bool
) -> None:
    """The ends of the inner graph, of its node and of the request pass its error on."""
    inner = plain(hotels=hotels, flights=flights).compile()
    built: StateGraph[Any] = StateGraph(State)
    built.add_node("team", inner).add_edge(START, "team")
    watched = Watched(inside=inside)
    with pytest.raises(ValueError, match="503"):
        call(watched(built.compile()), is_async)
    blamed = "team/hotels" if inside else "team"
    said = watched.errors()
    assert said.pop(blamed)[1:] == (None, False)
    assert {name: because for name, (_, because, _) in said.items()} == dict.fromkeys(
        ["team/__end__", "team", "__end__"] if inside else ["__end__"], blamed
    )
    assert not any(name.endswith("writer") for name in watched.ran())
    assert watched.failed() == [("error", blamed)]
    watched.must_be_over()


@IS_ASYNC
def test_the_recursion_limit_is_no_error_of_a_node(is_async: bool) -> None:
    """The request has failed at a limit; no node is blamed, and none ran that did not."""
    watched, seen = Watched(), []

    def told(name: str) -> Any:
        def act(state: Any) -> Any:
            seen.append(name)
            return {"done": [name]}

        return act

    built: StateGraph[Any] = StateGraph(State)
    built.add_node("a", told("a")).add_node("b", told("b"))
    built.add_edge(START, "a").add_edge("a", "b").add_edge("b", "a")
    with pytest.raises(GraphRecursionError):
        call(watched(built.compile()), is_async, {"recursion_limit": 5})
    assert watched.failed() == [("limit", None)] and watched.answers() == []
    assert {name: one[1:] for name, one in watched.errors().items()} == {"__end__": (None, True)}
    assert [name for name in watched.ran() if name in "ab"] == seen
    assert [(one.pattern, one.stage) for one in watched.session.findings] == [("FAIL", "request")]
    watched.must_be_over()


async def sleeps(state: Any) -> Any:
    await asyncio.sleep(100)


def slow_step(script: Script) -> Any:
    built = graph(script, "a", [(START, "slow"), (["slow"], "a")], slow=sleeps).compile()
    built.step_timeout = 5
    return built


TIMED_OUT = {"slow": "called off", "__end__": "called off"}
FAILING = [
    Failing(
        team(failing), {"b": "ValueError: no such city", "__end__": "by b"},
        ("error", "b"),
    ),
    Failing(team(slow_step), TIMED_OUT, ("timeout", None), "a"),
]  # fmt: skip


@pytest.mark.skipif(not hasattr(types, "TimeoutPolicy"), reason="LangGraph has it since 1.2")
def test_a_node_that_takes_longer_than_it_may_is_called_off() -> None:
    """That is a timeout of the request, and the error of nobody."""

    def build(script: Script) -> Any:
        built = graph(script, "a", [(START, "slow"), ("slow", "a")])
        built.add_node("slow", sleeps, timeout=types.TimeoutPolicy(run_timeout=30))
        return built.compile()

    watched = Watched()
    play(team(build), watched)
    assert (watched.failed(), watched.ends()) == ([("timeout", None)], TIMED_OUT)
    assert watched.answers() == [] and "a" not in watched.ran()
    watched.must_be_over()


@IN_A_GRAPH
def test_a_request_that_its_caller_cancels_is_no_failed_one(inside: bool) -> None:
    """Who is at work is called off, at whatever step."""

    def build(script: Script) -> Any:
        inner = graph(script, "xyz", [(START, "x"), ("x", "y"), (["x", "y"], "z")]).compile()
        return graph(script, "a", [(START, "team"), ("team", "a")], team=inner).compile()

    for step in range(2, 30, 3):
        watched = Watched(inside=inside)
        outcome = play(team(build), watched, cancel_at=step)
        if not outcome.raised:
            break
        assert watched.failed() == []
        assert all(one[2] for one in watched.errors().values())
        assert not any(one.is_alarm for one in watched.session.findings)
        assert watched.leaves_nothing_open()
        watched.must_be_sound()


@IS_ASYNC
def test_a_stream_that_its_caller_leaves_is_no_failed_request(is_async: bool) -> None:
    """What has not begun then has no activation."""
    watched = Watched()
    built = plain(hotels=lambda state: {"done": ["h"]}, flights=flights)
    built.add_node("printer", lambda state: {"done": ["printer"]}).add_edge("writer", "printer")
    team = watched(built.compile())

    async def leave() -> None:
        pieces = team.astream(QUESTION, stream_mode="updates")
        async for _ in pieces:
            break
        await pieces.aclose()

    if is_async:
        asyncio.run(leave())
    else:
        pieces = team.stream(QUESTION, stream_mode="updates")
        next(pieces)
        pieces.close()
    assert watched.failed() == [] and "printer" not in watched.ran()
    assert all(one[2] for one in watched.errors().values())
    watched.must_be_over()


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_what_never_ran_is_no_activation_of_a_request_that_is_well_either(mode: str) -> None:
    """A join that never ran is missing from the answer, and has done nothing itself."""
    watched = Watched(mode)
    play(team(half_join), watched)
    assert "j" not in watched.ran() and watched.patterns == ["ET"]
    watched.must_be_over()


def test_a_loop_that_the_recursion_limit_ends_is_not_mended_by_that() -> None:
    """No answer came of it."""

    def store(state: Any) -> Any:
        return {"name": "melon"}

    built: StateGraph[Any] = StateGraph(State)
    built.add_node("ask", lambda state: {"name": "how many?"}).add_node("store", store)
    built.add_edge(START, "ask").add_edge("ask", "store").add_edge("store", "ask")
    watched = Watched(setup=Setup(detectors=standard, limits=Thresholds().limits))
    with pytest.raises(GraphRecursionError):
        watched(built.compile(checkpointer=InMemorySaver())).invoke(
            QUESTION, {"recursion_limit": 60, "configurable": {"thread_id": "1"}}
        )
    watch, mending, found = Watch(standard()), Mending(), []
    for record in watched.records:
        raised = watch.feed(record)
        mending.look(watch.graph, record)
        for finding in raised:
            mending.add(watch.graph, finding)
        found += raised
    assert {one.pattern for one in mending.unmended_errors(found)} == {"LOOP", "FAIL"}
