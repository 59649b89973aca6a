"""LangGraph, wrapped: where it stops by itself is neither judged nor healed over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph import runtime
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from dig import Detector, Healer, InteractionGraph
from dig.detectors.finding import Finding
from dig.detectors.interventions import Reroute
from dig.detectors.policy import HEAL_ALL
from dig.graph.records import Emit, Record
from dig.runtime.setup import Setup

from .langgraph_teams import State, Watched, thread

Edges = list[tuple[Any, str]]
MODES = pytest.mark.parametrize("mode", ["observe", "heal"])
QUESTION = {"done": ["?"]}


def told(name: str) -> Callable[[Any], Any]:
    return lambda state: {"done": [name]}


def graph(names: str, edges: Edges, **more: Any) -> StateGraph[Any]:
    """Nodes that say their names; further ones are given."""
    built: StateGraph[Any] = StateGraph(State)
    for name in names:
        built.add_node(name, told(name))
    for name, node in more.items():
        built.add_node(name, node)
    for source, target in edges:
        built.add_edge(source, target)
    return built


def payment(**more: Any) -> StateGraph[Any]:
    """`pay` is paid when `legal` and `risk` have agreed."""
    legal = more.pop("legal", told("legal"))
    edges: Edges = [(START, "legal"), (START, "risk"), (["legal", "risk"], "pay")]
    return graph("", edges, legal=legal, risk=told("risk"), pay=told("pay"), **more)


def half(**more: Any) -> StateGraph[Any]:
    """`j` waits for `b` and `c`, and `c` is never run; `k` comes after `j`."""
    built = graph("abcjk", [(START, "a"), (["b", "c"], "j"), ("j", "k")], **more)
    built.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    return built


def kept(built: StateGraph[Any], **more: Any) -> Any:
    return built.compile(checkpointer=InMemorySaver(), **more)


def opened(watched: Watched) -> int:
    """The number of turns that are open; nothing has gone wrong."""
    seen = watched.session.statistics()
    assert (seen.faults, seen.missed) == (0, 0)
    return seen.open_turns


def waits_for(team: Any) -> tuple[str, ...]:
    waiting: tuple[str, ...] = team.get_state(thread()).next
    return waiting


# --- ways to call a graph ---------------------------------------------------------------------


def invoke(team: Any, given: Any, **more: Any) -> Any:
    return team.invoke(given, thread(), **more)["done"]


def ainvoke(team: Any, given: Any, **more: Any) -> Any:
    return asyncio.run(team.ainvoke(given, thread(), **more))["done"]


def stream(team: Any, given: Any, **more: Any) -> Any:
    return [*team.stream(given, thread(), stream_mode="values", **more)][-1]["done"]


def astream(team: Any, given: Any, **more: Any) -> Any:
    async def last() -> Any:
        pieces = team.astream(given, thread(), stream_mode="values", **more)
        return [piece async for piece in pieces][-1]["done"]

    return asyncio.run(last())


WAYS = pytest.mark.parametrize("ask", [invoke, ainvoke, stream, astream])
STOPS = pytest.mark.parametrize(
    "stops",
    [
        {"interrupt_before": ["pay"]},
        {"interrupt_after": ["legal"]},
        {"interrupt_after": ["legal", "risk"]},
        {"interrupt_before": ["pay"], "interrupt_after": ["legal"]},
    ],
    ids=str,
)


# --- breakpoints ------------------------------------------------------------------------------


@MODES
@WAYS
@STOPS
@pytest.mark.parametrize("when", ["compiled", "called"])
def test_a_breakpoint_before_a_join_holds_until_somebody_goes_on(
    mode: str, ask: Any, stops: Any, when: str
) -> None:
    """The answer of a graph that stands at a breakpoint is no early one, and does not go back."""
    watched = Watched(mode)
    compiled, called = (stops, {}) if when == "compiled" else ({}, stops)
    team = watched(kept(payment(), **compiled))
    assert ask(team, QUESTION, **called) == ["?", "legal", "risk"]
    assert waits_for(team) == ("pay",)
    assert ask(team, None) == ["?", "legal", "risk", "pay"]
    assert (watched.patterns, watched.healed(), watched.incidents()) == ([], [], ["waits"])
    watched.must_be_over()


@MODES
@pytest.mark.parametrize("name", ["interrupt_before", "interrupt_after"])
def test_a_graph_may_stop_at_every_node(mode: str, name: str) -> None:
    """`"*"` stands for all nodes, for a wrapped graph as for the bare one."""
    watched = Watched(mode)
    bare, team = kept(payment()), watched(kept(payment()))
    for given in (QUESTION, None, None, None):
        found = team.invoke(given, thread(), **{name: "*"})
        assert found == bare.invoke(given, thread(), **{name: "*"})
        assert waits_for(team) == waits_for(bare)
    assert "ET" not in watched.patterns and watched.leaves_nothing_open()


@MODES
def test_without_a_checkpointer_a_breakpoint_is_no_early_answer_either(mode: str) -> None:
    watched = Watched(mode)
    team = watched(payment().compile(interrupt_before=["pay"]))
    assert team.invoke(QUESTION)["done"] == ["?", "legal", "risk"]
    assert watched.patterns == [] and watched.leaves_nothing_open()


@MODES
@WAYS
def test_a_node_that_asks_somebody_holds_the_join_behind_it(mode: str, ask: Any) -> None:
    """One of two branches asks; the other one's message is not missing from the answer."""
    watched = Watched(mode)
    team = watched(kept(payment(legal=lambda state: {"done": [interrupt("Legal?")]})))
    assert ask(team, QUESTION) == ["?", "risk"]
    assert waits_for(team) == ("legal",)
    assert ask(team, Command(resume="yes")) == ["?", "yes", "risk", "pay"]
    assert watched.patterns == [] and watched.leaves_nothing_open()


@MODES
@WAYS
@pytest.mark.parametrize(
    "stops", [{"interrupt_before": ["y"]}, {"interrupt_after": ["x"]}], ids=str
)
def test_a_breakpoint_in_a_subgraph_holds_the_join_behind_it(
    mode: str, ask: Any, stops: Any
) -> None:
    inner = graph("xy", [(START, "x"), ("x", "y")]).compile(**stops)
    watched = Watched(mode)
    team = watched(kept(payment(legal=inner)))
    assert "pay" not in ask(team, QUESTION)
    assert waits_for(team) == ("legal",)
    assert ask(team, None)[-1] == "pay"
    assert watched.patterns == [] and watched.leaves_nothing_open()


@MODES
def test_what_somebody_has_changed_at_a_breakpoint_is_gone_on_with(mode: str) -> None:
    """A person writes in the place of `legal`, which ends all that was to run.

    What has waited is not run by LangGraph any more, which nobody tells the adapter.
    """

    def changed(team: Any) -> list[Any]:
        said: list[Any] = [team.invoke(QUESTION, thread())]
        for _ in range(3):
            team.update_state(thread(), {"done": ["by hand"]}, as_node="legal")
            said += [waits_for(team), team.invoke(None, thread()), waits_for(team)]
        return said

    def build() -> Any:
        return kept(payment(), interrupt_before=["legal", "pay"])

    watched = Watched(mode)
    assert changed(watched(build())) == changed(build())
    assert watched.patterns == [] and opened(watched) == 2


@MODES
def test_a_join_that_is_half_made_when_the_graph_stops_is_made_later(mode: str) -> None:
    """`pay` waits for `legal` over two breakpoints."""
    edges: Edges = [(START, "a"), (START, "risk"), ("a", "b"), (["b", "risk"], "pay")]
    built = graph("ab", edges, risk=told("risk"), pay=told("pay"))
    watched = Watched(mode)
    team = watched(kept(built, interrupt_before=["b", "pay"]))
    assert invoke(team, QUESTION) == ["?", "a", "risk"]
    assert invoke(team, None) == ["?", "a", "risk", "b"]
    assert waits_for(team) == ("pay",)
    assert invoke(team, None) == ["?", "a", "risk", "b", "pay"]
    assert watched.patterns == [] and watched.leaves_nothing_open()


@MODES
def test_after_the_last_node_a_graph_may_stop_as_well(mode: str) -> None:
    """Nothing is left to run behind the breakpoint, but for what somebody may still start."""
    watched = Watched(mode)
    team = watched(kept(half(), interrupt_after=["b"]))
    assert invoke(team, QUESTION) == ["?", "a", "b"]
    assert watched.patterns == [] and watched.leaves_nothing_open()


# --- what goes back ---------------------------------------------------------------------------


def test_an_answer_that_goes_back_stops_at_the_breakpoints_behind_it() -> None:
    """The join runs that never ran, and the node after it waits for a person."""
    for stops in ({"interrupt_before": ["k"]}, {"interrupt_after": ["j"]}):
        watched = Watched("heal")
        team = watched(kept(half()))
        assert invoke(team, QUESTION, **stops) == ["?", "a", "b", "j"]
        assert waits_for(team) == ("k",)
        assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
        assert watched.incidents() == ["waits"] and opened(watched) == 1


@pytest.mark.parametrize("before", [["j"], "*"], ids=str)
def test_a_node_behind_a_breakpoint_is_never_run_by_healing(before: Any) -> None:
    """A run that begins at a node passes its breakpoint, so such an answer does not go back."""
    watched = Watched("heal")
    team = watched(kept(half()))
    given: Any = QUESTION
    for _ in range(4):
        said = invoke(team, given, interrupt_before=before)
        given = None
        if not waits_for(team):
            break
    assert said == ["?", "a", "b"]
    assert watched.patterns in (["ET"], []) and "reroute" not in watched.healed()
    assert watched.leaves_nothing_open()


def test_an_answer_that_goes_back_goes_on_from_where_the_run_has_ended() -> None:
    """Also if the run began at an earlier checkpoint, which its config names."""
    watched = Watched("heal")
    team = watched(kept(half()))
    team.invoke(QUESTION, thread(), interrupt_before=["b"])
    began = team.get_state(thread()).config
    said = team.invoke({"done": ["!"]}, began)["done"]
    assert said == ["?", "a", "!", "a", "b", "j", "k"]
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    assert watched.leaves_nothing_open()


@WAYS
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_node_that_healing_runs_may_ask_somebody_and_is_not_run_past_that(
    ask: Any, durability: str
) -> None:
    """The join asks for approval, and the node after it runs when that is given."""
    built = half(approve=lambda state: {"done": [interrupt("Pay?")]}, pay=told("pay"))
    built.add_edge("k", "approve")
    built.add_edge("approve", "pay")
    watched = Watched("heal")
    team = watched(kept(built))
    assert ask(team, QUESTION, durability=durability) == ["?", "a", "b", "j", "k"]
    assert waits_for(team) == ("approve",)
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    said = ask(team, Command(resume="yes"), durability=durability)
    assert said == ["?", "a", "b", "j", "k", "yes", "pay"]
    assert watched.patterns == ["ET"] and watched.leaves_nothing_open()


def test_a_run_that_goes_on_is_a_run_of_its_own_for_who_follows_runs() -> None:
    """The id that the caller gave is that of the first run, and of no other."""
    begun: list[UUID] = []

    class Follower(BaseCallbackHandler):  # type: ignore[misc]
        def on_chain_start(self, *args: Any, run_id: UUID, **more: Any) -> None:
            begun.append(run_id)

    watched = Watched("heal")
    team, mine = watched(kept(half())), uuid4()
    team.invoke(QUESTION, thread(run_id=mine, callbacks=[Follower()]))
    assert watched.healed() == ["reroute"]
    assert begun[0] == mine and len({*begun}) == len(begun)


class Refuses(Detector, Healer):
    """Finds fault with every answer, and has it sent back."""

    pattern = "REFUSED"

    def detect(self, monitored: InteractionGraph, record: Record) -> Iterable[Finding]:
        if isinstance(record, Emit) and record.final:
            yield Finding(self.pattern, record.t, record.us, {"event": record.event}, {})

    def heal(self, monitored: InteractionGraph, finding: Finding) -> Iterable[Reroute]:
        yield Reroute(finding.subject["event"], "No.", ("__end__",))


def refusing() -> Setup:
    one = Refuses()
    return Setup(detectors=lambda: [one], healers=lambda: {"REFUSED": one}, policy=HEAL_ALL)


@pytest.mark.parametrize("build", [payment, half])
def test_whoever_finds_fault_with_it_what_is_said_at_a_breakpoint_does_not_go_back(
    build: Any,
) -> None:
    """It is no answer yet while a node waits there; else LangGraph has stopped all the same."""
    bare, watched = kept(build()), Watched("heal", refusing())
    team, stops = watched(kept(build())), {"interrupt_after": ["b", "risk"]}
    assert invoke(team, QUESTION, **stops) == invoke(bare, QUESTION, **stops)
    assert waits_for(team) == waits_for(bare)
    waits = bool(waits_for(bare))
    assert watched.patterns == ([] if waits else ["REFUSED"])
    told = [one for one in watched.incidents() if one != "never ran"]
    assert told == (["waits"] if waits else ["downgraded"])
    assert opened(watched) == waits


@MODES
def test_where_a_hidden_run_does_not_stop_its_early_answer_is_found(mode: str) -> None:
    """LangGraph asks about every node, and stops at none that is hidden."""
    watched = Watched(mode)
    team = watched(kept(half()))
    config = thread(tags=["langsmith:hidden"])
    assert team.invoke(QUESTION, config, interrupt_before="*")["done"] == ["?", "a", "b"]
    assert watched.patterns == ["ET"] and "reroute" not in watched.healed()
    assert watched.leaves_nothing_open()


# --- LangGraph's own limits -------------------------------------------------------------------

since_1_2 = pytest.mark.skipif(
    not hasattr(runtime, "RunControl"),
    reason="before 1.2 LangGraph counts one step more for a run that goes on, and cannot drain one",
)


def unsure() -> StateGraph[Any]:
    """`b` says the same, however often it is told."""
    return graph("ab", [(START, "a"), ("a", "b")])


@pytest.mark.parametrize(
    ("limit", "runs"), [(3, 1), (4, 1), (5, 2), pytest.param(6, 3, marks=since_1_2)]
)
@WAYS
def test_a_request_that_is_healed_needs_no_more_steps_than_its_recursion_limit(
    ask: Any, limit: int, runs: int
) -> None:
    """Each further run takes what the runs before it have left."""
    watched = Watched("heal", refusing())
    team = watched(kept(unsure())).with_config(recursion_limit=limit)
    assert ask(team, QUESTION) == ["?", "a", *"b" * runs]
    assert runs < limit
    assert watched.leaves_nothing_open()


def test_a_run_that_is_healed_beyond_its_limit_gives_the_answer_that_it_had() -> None:
    """The bare graph would have answered, so no recursion error is raised."""
    built = half(z=told("z"))
    built.add_edge("k", "z")
    built.add_edge("z", "k")
    watched = Watched("heal")
    team = watched(kept(built))
    config = thread(recursion_limit=8)
    assert team.invoke(QUESTION, config)["done"][:5] == ["?", "a", "b", "j", "k"]
    assert "bounce failed" in watched.incidents()
    watched.must_be_over()


@since_1_2
def test_a_join_that_the_limit_has_kept_from_running_is_not_missing() -> None:
    """What healing began was cut short in front of a join of its own."""
    edges: Edges = [("k", "x"), ("k", "y"), (["x", "y"], "z")]
    built = half(x=told("x"), y=told("y"), z=told("z"))
    for source, target in edges:
        built.add_edge(source, target)
    watched = Watched("heal")
    team = watched(kept(built))
    said = team.invoke(QUESTION, thread(recursion_limit=5))["done"]
    assert said == ["?", "a", "b", "j", "k", "x", "y"]
    assert waits_for(team) == ("z",)
    assert watched.patterns == ["ET"]
    assert watched.incidents() == ["bounce failed", "never ran"]
    assert watched.leaves_nothing_open()


@MODES
def test_the_recursion_error_of_a_request_is_raised_as_before(mode: str) -> None:
    built = graph("ab", [(START, "a"), ("a", "b"), ("b", "a")])
    watched = Watched(mode)
    team = watched(kept(built))
    with pytest.raises(GraphRecursionError):
        team.invoke(QUESTION, thread(recursion_limit=5))
    assert watched.leaves_nothing_open()


@since_1_2
def test_a_run_that_is_to_be_drained_does_not_go_on() -> None:
    """A drain was asked for while the last node ran."""
    control = runtime.RunControl()

    def b(state: Any) -> Any:
        control.request_drain("shutdown")
        return Command(goto="ghost", update={"done": ["b"]})

    built = graph("a", [(START, "a"), ("a", "b")], b=b)
    watched = Watched("heal")
    team = watched(kept(built))
    assert team.invoke(QUESTION, thread(), control=control)["done"] == ["?", "a", "b"]
    assert watched.patterns[0] == "ET" and "reroute" not in watched.healed()
    assert watched.leaves_nothing_open()


def test_a_graph_that_is_a_node_does_not_go_on_by_itself() -> None:
    """What the graph above it has planned, and its limits, hold."""
    watched = Watched("heal")
    inner = watched(kept(half()))
    outer = graph("", [(START, "team"), ("team", END)], team=inner)
    outer.compile(checkpointer=InMemorySaver()).invoke(QUESTION, thread())
    assert watched.patterns == ["ET"] and "reroute" not in watched.healed()
    assert watched.leaves_nothing_open()
