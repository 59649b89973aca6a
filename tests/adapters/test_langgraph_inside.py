"""LangGraph, wrapped: nodes of graphs that are nodes, calls of tools, and random graphs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send

import dig
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.graph.records import Emit, IncidentRow

from .framework_gates import behind, usher
from .harness import Scenario, Script, play
from .langgraph_teams import (
    QUESTION,
    State,
    Watched,
    around,
    ask_thread,
    endless,
    graph,
    half_join,
    inside,
    line,
    node,
    remembered,
    team,
    thread,
)


class Inside(Watched):
    """Wraps graphs with all that is within them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"inside": True, **options})


def deep(script: Script) -> Any:
    """A graph in a graph in a graph."""
    return graph(script, "a", [(START, "team"), ("team", "a")], team=around(script, line(script)))


# --- what is seen ---------------------------------------------------------------------------


def test_the_nodes_of_graphs_are_agents_named_by_the_node_that_the_graph_is() -> None:
    """The node asks its graph, and gets the answer, so that lineage passes through the graph."""
    watched = Inside()
    play(team(lambda script: deep(script).compile(), ask_thread), watched)
    watched.must_be_sound()
    assert watched.patterns == []
    sent = [one for one in watched.rows(Emit) if one.type != "notice"]
    assert [name for one in sent for name in one.to] == [
        "__start__", "team", "team/__start__", "team/team", "team/team/__start__", "team/team/a",
        "team/team/b", "team/team/c", "team/team/__end__", "team/team", "team/__end__", "team",
        "a", "__end__",
    ]  # fmt: skip


def test_without_the_option_a_graph_that_is_a_node_is_one_agent() -> None:
    """It is off by default."""
    watched = Watched()
    play(team(lambda script: deep(script).compile(), ask_thread), watched)
    assert {*watched.ran()} == {"__start__", "team", "a", "__end__"}


def test_a_graph_that_several_sends_start_has_an_instance_of_each_node_for_each() -> None:
    """So the parts are not mixed up."""

    def build(script: Script) -> Any:
        part = node(script, "x", lambda state, number: {"done": [state["name"]]})
        inner = graph(script, [], [(START, "x")], x=part).compile()
        built = graph(script, "a", [(START, "a")], sub=inner)
        built.add_conditional_edges("a", lambda state: [Send("sub", {"name": n}) for n in "uvw"])
        return built.compile()

    watched = Inside()
    play(team(build), watched)
    watched.must_be_sound()
    assert {"sub/x", "sub/x#2", "sub/x#3"} <= {*watched.ran()}
    assert watched.leaves_nothing_open()
    assert {*watched.patterns} == {"FAIL"}, "LangGraph refuses three values of `name` in one step"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_is_called_inside_is_one_call_of_the_node_inside(is_async: bool) -> None:
    """The node around it does not tell of it once more."""
    built: StateGraph[Any] = StateGraph(MessagesState)
    built.add_node("inner", agent("Rome", "Oslo"))
    built.add_edge(START, "inner")
    watched = Inside(tools=True)
    wrapped = watched(built.compile())
    asyncio.run(wrapped.ainvoke(ASKED)) if is_async else wrapped.invoke(ASKED)
    watched.must_be_sound()
    assert len(called(watched)) == 4
    calls = [one for one in watched.rows(Emit) if one.type == "tool_result"]
    assert {name for one in calls for name in one.to} == {"inner/tools"}


def test_a_graph_that_a_function_calls_is_part_of_its_node() -> None:
    """LangGraph does not show such a graph before it runs."""
    inner = line(Script())

    async def call(state: Any) -> Any:
        return {"done": (await inner.ainvoke(state))["done"][-1:]}

    built: StateGraph[Any] = StateGraph(State)
    built.add_node("call", call)
    built.add_edge(START, "call")
    watched = Inside()
    assert asyncio.run(watched(built.compile()).ainvoke(QUESTION))["done"] == ["?", "c"]
    assert {*watched.ran()} == {"__start__", "call", "__end__"}


# --- what is found, and healed ----------------------------------------------------------------


def repeating(script: Script) -> Any:
    """Two nodes of an inner graph that say the same to each other, twelve times."""

    def go(state: Any) -> str:
        return "b" if state["done"].count("a") < 12 else END

    inner = graph(script, "ab", [(START, "a"), ("b", "a")])
    inner.add_conditional_edges("a", go, ["b", END])
    return inner.compile()


@pytest.mark.parametrize(("watched", "found"), [(Inside, {"LOOP", "LIVELOCK"}), (Watched, set())])
def test_a_loop_in_a_graph_that_is_a_node_is_found(watched: Any, found: set[str]) -> None:
    """LOOP and LIVELOCK are only seen from inside."""
    one = watched(limits=Thresholds(loop_limit=5, livelock_turns=20).limits)
    play(inside(team(repeating, ask_thread)), one)
    one.must_be_sound()
    assert {*one.patterns} == found
    rounds = [one for one in one.session.findings if one.pattern == "LIVELOCK"]
    assert all({"team/a", "team/b"} <= {*one.evidence["agents"]} for one in rounds)


@pytest.mark.parametrize(("watched", "found"), [(Inside, ["ET"]), (Watched, [])])
def test_a_join_in_a_graph_that_never_runs_is_missing_from_the_answer(
    watched: Any, found: list[str]
) -> None:
    """The input of the join is open when the whole graph answers."""
    one = watched()
    play(inside(team(half_join, ask_thread)), one)
    one.must_be_sound()
    assert one.patterns == found and one.leaves_nothing_open()


def test_a_join_in_a_graph_that_never_runs_names_the_agent_it_waits_for() -> None:
    watched = Inside()
    play(inside(team(half_join, ask_thread)), watched)
    [detail] = [row.detail for row in watched.rows(IncidentRow) if "awaited" in row.detail]
    assert (detail["agent"], detail["awaited"]) == ("team/j", ["team/c"])
    assert "team/c" in watched.session.monitor.graph.run.agents


def test_an_answer_that_lacks_work_inside_has_the_node_that_the_graph_is_run_once_more() -> None:
    """At most twice; the third early answer is handed over."""
    watched = Inside("heal")
    play(inside(team(remembered, ask_thread)), watched)
    watched.must_be_sound()
    assert watched.patterns == ["ET"] * 3 and watched.leaves_nothing_open()
    assert watched.ran().count("team/a") == 3


def test_the_limits_of_a_run_with_a_loop_inside_are_those_of_the_run_alone() -> None:
    """A loop inside ends as without the monitor, and is told as an error."""

    async def ask(graph: Any) -> Any:
        return await graph.ainvoke(QUESTION, thread(recursion_limit=9))

    watched = Inside()
    watched.must_change_nothing(inside(team(endless, ask)))
    watched.must_be_over()


# --- what is refused ------------------------------------------------------------------------


def test_two_nodes_of_one_name_are_refused() -> None:
    """The message says which, and what to do."""
    script = Script()
    built = graph(script, ["sub/a"], [(START, "sub"), ("sub", "sub/a")], sub=line(script))
    with pytest.raises(SettingsError, match=r"two agents are called 'sub/a'.*inside=True"):
        dig.wrap(built.compile(), inside=True)
    dig.unwrap(dig.wrap(built.compile()))


def test_a_graph_that_is_wrapped_by_itself_stays_a_session_of_its_own() -> None:
    """The outer session sees one node."""
    script = Script()
    inner = dig.wrap(line(script))
    watched = Inside()
    built = graph(script, [], [(START, "team")], team=inner).compile()
    asyncio.run(watched(built).ainvoke(QUESTION))
    assert {*watched.ran()} == {"__start__", "team", "__end__"}
    assert dig.session_of(inner).statistics().requests == 1


# --- with `tools=True` calls of tools are events, also within subgraphs ---


@tool  # type: ignore[untyped-decorator]
def weather(city: str) -> str:
    """The weather."""
    if city == "Atlantis":
        raise ValueError(city)
    return f"sunny in {city}"


def agent(*cities: str, times: int = 1) -> Any:
    """A model that asks for the weather of some cities, some times, and a node with the tool."""

    def model(state: MessagesState) -> dict[str, Any]:
        asked = sum(message.type == "ai" for message in state["messages"])
        if asked == times:
            return {"messages": [AIMessage("done")]}
        calls = [
            {"name": "weather", "args": {"city": city}, "id": f"{asked} {city}"} for city in cities
        ]
        return {"messages": [AIMessage("", tool_calls=calls)]}

    def following(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    built = StateGraph(MessagesState)
    built.add_node("model", model)
    built.add_node("tools", ToolNode([weather], handle_tool_errors=True))
    built.add_edge(START, "model")
    built.add_conditional_edges("model", following, ["tools", END])
    built.add_edge("tools", "model")
    return built.compile()


ASKED: Any = {"messages": [("user", "?")]}


def called(watched: Watched) -> list[tuple[str, Any]]:
    kinds = ("tool_call", "tool_result")
    return [(row.type, row.payload) for row in watched.rows(Emit) if row.type in kinds]


@pytest.mark.parametrize("is_async", [False, True])
def test_each_call_of_a_tool_is_an_event_and_so_is_its_result(is_async: bool) -> None:
    """Two at once are two; the answer is as without a monitor, and nothing stays open."""
    watched, bare = Watched(tools=True), agent("Rome", "Oslo")
    graph = watched(agent("Rome", "Oslo"))
    answers = [
        asyncio.run(one.ainvoke(ASKED)) if is_async else one.invoke(ASKED) for one in (bare, graph)
    ]
    assert len({tuple(m.content for m in one["messages"]) for one in answers}) == 1
    watched.must_be_sound()
    assert sorted(called(watched), key=str) == [
        ("tool_call", {"city": "Oslo"}), ("tool_call", {"city": "Rome"}),
        ("tool_result", "sunny in Oslo"), ("tool_result", "sunny in Rome"),
    ]  # fmt: skip
    assert {one for one in watched.session.monitor.graph.agents if one.startswith("tool:")} == {
        "tool:weather"
    }


def test_why_no_gate_keeps_a_tool_is_told() -> None:
    """Not that the graph is called on a thread: it is not."""
    gate = usher(keeps=lambda graph, event: event.type.startswith("tool_"), after_s=5.0)
    watched = Watched("heal", behind(gate)(), tools=True)
    asyncio.run(watched(agent("Rome")).ainvoke(ASKED))
    why = [row.detail["why"] for row in watched.rows(IncidentRow) if row.what == "not held"]
    assert why == ["LangGraph tells of a tool in a callback, which waits for nobody"] * 2


def test_a_tool_that_raises_is_told_as_a_notice() -> None:
    """The node goes on with what LangGraph makes of it."""
    watched = Watched(tools=True)
    watched(agent("Atlantis")).invoke(ASKED)
    watched.must_be_sound()
    assert called(watched) == [("tool_call", {"city": "Atlantis"})]
    errors = [one.payload for one in watched.rows(Emit) if one.by]
    assert {"error": "ValueError: Atlantis"} in errors


def test_tools_within_a_subgraph_are_seen_so_a_loop_of_them_is_found() -> None:
    """The same call five times is LOOP; without the option a subgraph is one node."""
    for shows in (True, False):
        built = StateGraph(MessagesState)
        built.add_node("inner", agent("Rome", times=5))
        built.add_edge(START, "inner")
        watched = Watched(tools=shows)
        watched(built.compile()).invoke(ASKED)
        assert len(called(watched)) == (10 if shows else 0)
        assert ("LOOP" in watched.patterns) == shows


def test_without_the_option_tools_are_part_of_their_node() -> None:
    """It is off by default."""
    watched = Watched()
    watched(agent("Rome")).invoke(ASKED)
    watched.must_be_sound()
    assert called(watched) == []


# --- graphs that nobody has thought of ---

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


def planned(plan: dict[str, Any], static: Any, joined: Any, kept: bool, stream: bool) -> Scenario:
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
    scenario, watched = planned(plan, static, joined, kept, stream), Watched()
    bare = watched.must_change_nothing(scenario, seed=seed)
    watched.must_be_over()

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
