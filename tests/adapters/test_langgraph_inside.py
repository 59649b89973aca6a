"""LangGraph, wrapped with `inside=True`: the nodes of a graph that is a node are agents, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send

import dig
from dig.detectors import standard
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.graph.records import Emit
from dig.runtime import Setup

from .conformance import Unchanged
from .harness import Script, play
from .langgraph_asked import QUESTION, SCENARIOS, thread
from .langgraph_cases import inside, line, remembered
from .langgraph_teams import State, around, chain, endless, graph, half_join, node, retried
from .langgraph_watch import Watched as Outside
from .langgraph_watch import seats, team
from .test_langgraph_interface import INNER, ask_thread
from .test_langgraph_tools import ASKED, agent, called


class Watched(Outside):
    """Wraps graphs with all that is within them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"inside": True, **options})


NODES = ("subgraph-ask", "subgraph-ask_at_once", "two_teams-ask", "nested_send-ask",
         "subgraph-streamed-inside")  # fmt: skip


class TestUnchanged(Unchanged):
    watched = Watched
    scenarios = (
        *(one for one in SCENARIOS if one.name in NODES),
        *(inside(one) for one in (*INNER, team(retried, ask_thread), team(chain, ask_thread))),
    )
    cancelled = scenarios[:1]
    may_be_healed = True


def deep(script: Script) -> Any:
    """A graph in a graph in a graph."""
    return graph(script, "a", [(START, "team"), ("team", "a")], team=around(script, line(script)))


# --- what is seen ---------------------------------------------------------------------------


def test_the_nodes_of_graphs_are_agents_named_by_the_node_that_the_graph_is() -> None:
    """The node asks its graph, and gets the answer, so that lineage passes through the graph."""
    watched = Watched()
    play(team(lambda script: deep(script).compile(), ask_thread), watched)
    watched.must_be_sound()
    assert watched.patterns == []
    sent = [one for one in watched.records if isinstance(one, Emit) and one.type != "notice"]
    assert [name for one in sent for name in one.to] == [
        "__start__", "team", "team/__start__", "team/team", "team/team/__start__", "team/team/a",
        "team/team/b", "team/team/c", "team/team/__end__", "team/team", "team/__end__", "team",
        "a", "__end__",
    ]  # fmt: skip


def test_without_the_option_a_graph_that_is_a_node_is_one_agent() -> None:
    """It is off by default."""
    watched = Outside()
    play(team(lambda script: deep(script).compile(), ask_thread), watched)
    assert seats(watched.session.monitor.graph) == {"__start__", "team", "a", "__end__"}


def test_a_graph_that_several_sends_start_has_an_instance_of_each_node_for_each() -> None:
    """So the parts are not mixed up."""

    def build(script: Script) -> Any:
        part = node(script, "x", lambda state, number: {"done": [state["name"]]})
        inner = graph(script, [], [(START, "x")], x=part).compile()
        built = graph(script, "a", [(START, "a")], sub=inner)
        built.add_conditional_edges("a", lambda state: [Send("sub", {"name": n}) for n in "uvw"])
        return built.compile()

    watched = Watched()
    play(team(build), watched)
    watched.must_be_sound()
    assert {"sub/x", "sub/x#2", "sub/x#3"} <= seats(watched.session.monitor.graph)
    assert watched.leaves_nothing_open()
    assert {*watched.patterns} == {"FAIL"}, "LangGraph refuses three values of `name` in one step"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_is_called_inside_is_one_call_of_the_node_inside(is_async: bool) -> None:
    """The node around it does not tell of it once more."""
    built: StateGraph[Any] = StateGraph(MessagesState)
    built.add_node("inner", agent("Rome", "Oslo"))
    built.add_edge(START, "inner")
    watched = Watched(tools=True)
    wrapped = watched(built.compile())
    asyncio.run(wrapped.ainvoke(ASKED)) if is_async else wrapped.invoke(ASKED)
    watched.must_be_sound()
    assert len(called(watched)) == 4
    calls = [one for one in watched.records if isinstance(one, Emit) and one.type == "tool_result"]
    assert {name for one in calls for name in one.to} == {"inner/tools"}


def test_a_graph_that_a_function_calls_is_part_of_its_node() -> None:
    """LangGraph does not show such a graph before it runs."""
    inner = line(Script())

    async def call(state: Any) -> Any:
        return {"done": (await inner.ainvoke(state))["done"][-1:]}

    built: StateGraph[Any] = StateGraph(State)
    built.add_node("call", call)
    built.add_edge(START, "call")
    watched = Watched()
    assert asyncio.run(watched(built.compile()).ainvoke(QUESTION))["done"] == ["?", "c"]
    assert seats(watched.session.monitor.graph) == {"__start__", "call", "__end__"}


# --- what is found, and healed ----------------------------------------------------------------


def repeating(script: Script) -> Any:
    """Two nodes of an inner graph that say the same to each other, twelve times."""

    def go(state: Any) -> str:
        return "b" if state["done"].count("a") < 12 else END

    inner = graph(script, "ab", [(START, "a"), ("b", "a")])
    inner.add_conditional_edges("a", go, ["b", END])
    return inner.compile()


@pytest.mark.parametrize(("watched", "found"), [(Watched, {"LOOP", "LIVELOCK"}), (Outside, set())])
def test_a_loop_in_a_graph_that_is_a_node_is_found(watched: Any, found: set[str]) -> None:
    """LOOP and LIVELOCK are only seen from inside."""
    limits = Thresholds(loop_limit=5, livelock_turns=20).limits
    one = watched(setup=Setup(detectors=standard, limits=limits))
    play(inside(team(repeating, ask_thread)), one)
    one.must_be_sound()
    assert {*one.patterns} == found
    rounds = [one for one in one.session.findings if one.pattern == "LIVELOCK"]
    assert all({"team/a", "team/b"} <= {*one.evidence["agents"]} for one in rounds)


@pytest.mark.parametrize(("watched", "found"), [(Watched, ["ET"]), (Outside, [])])
def test_a_join_in_a_graph_that_never_runs_is_missing_from_the_answer(
    watched: Any, found: list[str]
) -> None:
    """The input of the join is open when the whole graph answers."""
    one = watched()
    play(inside(team(half_join, ask_thread)), one)
    one.must_be_sound()
    assert one.patterns == found and one.leaves_nothing_open()


def test_an_answer_that_lacks_work_inside_has_the_node_that_the_graph_is_run_once_more() -> None:
    """At most twice; the third early answer is handed over."""
    watched = Watched("heal")
    play(inside(team(remembered, ask_thread)), watched)
    watched.must_be_sound()
    assert watched.patterns == ["ET"] * 3 and watched.leaves_nothing_open()
    history = watched.session.monitor.graph.history
    ran = [history.agent(n) for n in range(len(history.activation_ids))]
    assert ran.count("team/a") == 3


def test_the_limits_of_a_run_with_a_loop_inside_are_those_of_the_run_alone() -> None:
    """A loop inside ends as without the monitor, and is told as an error."""

    async def ask(graph: Any) -> Any:
        return await graph.ainvoke(QUESTION, thread(recursion_limit=9))

    watched = Watched()
    assert play(inside(team(endless, ask)), watched) == play(inside(team(endless, ask)))
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


# --- what is refused ------------------------------------------------------------------------


def test_two_nodes_of_one_name_are_refused() -> None:
    """The message says which, and what to do."""
    script = Script()
    built = graph(script, ["sub/a"], [(START, "sub"), ("sub", "sub/a")], sub=line(script))
    with pytest.raises(SettingsError, match=r"two agents would be called 'sub/a'.*inside=True"):
        dig.wrap(built.compile(), inside=True)
    dig.unwrap(dig.wrap(built.compile()))


def test_a_graph_that_is_wrapped_by_itself_stays_a_session_of_its_own() -> None:
    """The outer session sees one node."""
    script = Script()
    inner = dig.wrap(line(script))
    watched = Watched()
    built = graph(script, [], [(START, "team")], team=inner).compile()
    asyncio.run(watched(built).ainvoke(QUESTION))
    assert seats(watched.session.monitor.graph) == {"__start__", "team", "__end__"}
    assert dig.session_of(inner).statistics().requests == 1
