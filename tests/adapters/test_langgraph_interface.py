"""LangGraph, wrapped: it is used as before; what it holds, shows, refuses and leaves."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel._loop import SyncPregelLoop
from langgraph.types import Command, Send, interrupt

import dig
from dig import Detector, Healer
from dig.adapters.langgraph.routes import is_handoff
from dig.adapters.langgraph.run import GraphRequest
from dig.detectors import standard
from dig.detectors.finding import Finding
from dig.detectors.interventions import Intervention, Reroute
from dig.detectors.policy import HEAL_ALL
from dig.errors import SettingsError
from dig.faults import Fault, around
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, End, IncidentRow, Record
from dig.runtime.setup import Setup
from tests.own.__main__ import HERE, Results

from .framework_gates import NEVER, behind, to, usher
from .harness import Scenario, Script, play
from .hostile_payloads import HOSTILE
from .langgraph_teams import (
    INNER,
    QUESTION,
    State,
    Watched,
    ask_twice,
    by_enum,
    cached_fan,
    chain,
    graph,
    line,
    nested,
    node,
    team,
    thread,
)


def plain(names: str = "ab", **more: Any) -> Any:
    """A graph of nodes that need no script, one after the other."""
    built: StateGraph[Any] = StateGraph(State)
    for name in names:
        built.add_node(name, lambda state, name=name: {"done": [name]}, **more)
    for one, other in zip([START, *names], [*names, END], strict=True):
        built.add_edge(one, other)
    return built


# --- it is used as before ---------------------------------------------------------------------


def test_a_wrapped_graph_is_a_graph_of_the_same_kind_and_the_original_is_untouched() -> None:
    original = plain().compile(name="pair")
    nodes = dict(original.nodes)
    wrapped = dig.wrap(original)
    assert isinstance(wrapped, CompiledStateGraph) and wrapped is not original
    assert type(wrapped).__name__ == "CompiledStateGraph" and wrapped.get_name() == "pair"
    assert inspect.signature(wrapped.astream) == inspect.signature(original.astream)
    assert wrapped.get_graph().to_json() == original.get_graph().to_json()
    assert original.nodes == nodes and wrapped.nodes == nodes
    assert dig.wrap(wrapped) is wrapped
    assert dig.unwrap(wrapped) is original


def test_after_unwrap_the_copy_runs_on_and_nobody_looks() -> None:
    wrapped = dig.wrap(plain().compile())
    session = dig.session_of(wrapped)
    wrapped.invoke(QUESTION)
    dig.unwrap(wrapped)
    assert wrapped.invoke(QUESTION)["done"] == ["?", "a", "b"]
    assert session.statistics().requests == 1
    assert session.stopped == "the team was unwrapped"


def test_with_config_the_copy_of_a_wrapped_graph_is_monitored_too() -> None:
    wrapped = dig.wrap(plain().compile())
    wrapped.with_config(tags=["x"]).invoke(QUESTION)
    assert dig.session_of(wrapped).statistics().requests == 1


def test_synchronous_calls_on_threads_give_the_same_and_are_monitored() -> None:
    built = plain("a")
    for name in "bcd":
        built.add_node(name, lambda state, name=name: {"done": [name]})
        built.add_edge("a", name)
    bare = built.compile()
    wrapped = dig.wrap(bare)
    assert wrapped.invoke(QUESTION) == bare.invoke(QUESTION)
    for mode in ("values", "updates", "tasks"):
        pieces, expected = list(wrapped.stream(QUESTION)), list(bare.stream(QUESTION))
        assert sorted(map(str, pieces)) == sorted(map(str, expected)), mode
    assert wrapped.batch([QUESTION] * 3) == bare.batch([QUESTION] * 3)
    seen = dig.session_of(wrapped).statistics()
    assert (seen.requests, seen.open_turns, seen.faults, seen.missed) == (7, 0, 0, 0)


def test_a_wrapped_graph_may_be_a_node_of_another_graph() -> None:
    wrapped = dig.wrap(plain("xy").compile())
    outer: StateGraph[Any] = StateGraph(State)
    outer.add_node("team", wrapped)
    outer.add_edge(START, "team")
    assert outer.compile().invoke({"done": ["?"]})["done"] == ["?", "?", "x", "y"]
    assert dig.session_of(wrapped).statistics().requests == 1


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("scenario", INNER, ids=str)
def test_whatever_a_wrapped_graph_does_as_a_node_of_another_graph_is_as_before(
    scenario: Scenario, mode: str
) -> None:
    watched, asked = Watched(mode), nested(scenario)
    assert play(asked(watched)) == play(asked(lambda inner: inner))
    assert watched.leaves_nothing_open()


def test_an_agent_with_tools_is_a_team_of_its_model_and_its_tools() -> None:
    agents = pytest.importorskip("langchain.agents", reason="langchain is not installed")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    class Model(GenericFakeChatModel):  # type: ignore[misc]
        def bind_tools(self, tools: Any, **more: Any) -> Any:
            return self

    def build() -> Any:
        calls = [{"name": "weather", "args": {"city": "Rome"}, "id": f"c{i}"} for i in range(2)]
        said = [AIMessage("", tool_calls=calls), AIMessage("Sunny, twice.")]
        return agents.create_agent(Model(messages=iter(said)), [weather])

    def weather(city: str) -> str:
        """The weather."""
        return f"sunny in {city}"

    def said(result: Any) -> list[str]:
        return [message.content for message in result["messages"]]

    watched = Watched()
    question = {"messages": [("user", "Rome?")]}
    assert said(watched(build()).invoke(question)) == said(build().invoke(question))
    assert {"model", "tools", "tools#2"} <= {*watched.ran()}


# --- what it holds and changes ----------------------------------------------------------------


def late(to_whom: str) -> Setup:
    """What goes to one node is kept for a while."""
    gate = usher("It is late.", keeps=to(to_whom), after_s=5.0)
    return Setup(detectors=standard, gates=[gate])


def test_a_gate_that_never_decides_holds_no_longer_than_it_said() -> None:
    watched = Watched("heal", behind(usher(keeps=to("b"), after_s=NEVER))())
    bare, held = play(team(chain)), play(team(chain), watched)
    assert held.returned == bare.returned
    assert held.elapsed == pytest.approx(bare.elapsed + 60)
    assert watched.leaves_nothing_open()


def test_on_a_thread_nobody_can_wait_for_a_gate_and_that_is_told() -> None:
    told: list[Record] = []
    gates = late("b")
    wrapped = dig.wrap(plain().compile(), mode="heal", setup=gates, sink=told.append)
    assert wrapped.invoke(QUESTION)["done"] == ["?", "a", "b"]
    (row,) = [one for one in told if isinstance(one, IncidentRow) and one.what == "not held"]
    assert row.detail["why"].startswith("the graph is called on a thread")


class Elsewhere(Detector, Healer):
    """Finds every message to one node, and heals by sending it to others."""

    pattern = "ELSEWHERE"

    def __init__(self, node: str, *to: str) -> None:
        self.node, self.to = node, to

    def detect(self, monitored: InteractionGraph, record: Record) -> Iterable[Finding]:
        if isinstance(record, Emit) and record.to == (self.node,):
            yield Finding(self.pattern, record.t, record.us, {"event": record.event}, {})

    def heal(self, monitored: InteractionGraph, finding: Finding) -> Iterable[Intervention]:
        yield Reroute(finding.subject["event"], "It is for you.", self.to)


def elsewhere(node: str, *to: str) -> Setup:
    one = Elsewhere(node, *to)
    return Setup(detectors=lambda: [one], healers=lambda: {"ELSEWHERE": one}, policy=HEAL_ALL)


@pytest.mark.parametrize(
    ("to", "ran"),
    [(("c",), "ac"), (("b", "c"), "abcc"), (("d", "c"), "acd"), (("ghost",), "abc"), ((), "a")],
    ids=str,
)
def test_a_message_on_a_static_edge_can_be_sent_elsewhere_before_it_arrives(
    to: tuple[str, ...], ran: str
) -> None:
    watched = Watched("heal", elsewhere("b", *to))
    outcome = play(team(line), watched)
    assert "".join(sorted(agent for agent, what, _ in outcome.log if what == "ends")) == ran
    assert watched.incidents() == (["downgraded"] if "ghost" in to else [])


def test_what_two_nodes_make_of_the_answers_of_a_person_belongs_together() -> None:
    """Each hears its own answer; what they write has one root, and is no CLA."""

    def asking_two(script: Script) -> Any:
        def asks(name: str) -> Any:
            async def ask(state: Any) -> Any:
                return {"done": [interrupt(name)]}

            return ask

        edges = [(START, "a"), (START, "b"), ("a", "c"), ("b", "c")]
        built = graph(script, "c", edges, a=asks("a?"), b=asks("b?"))
        return built.compile(checkpointer=InMemorySaver())

    async def answer_both(built: Any) -> Any:
        asked = await built.ainvoke(QUESTION, thread())
        answers = {one.id: f"{one.value} yes" for one in asked["__interrupt__"]}
        return (await built.ainvoke(Command(resume=answers), thread()))["done"]

    watched, asked = Watched("heal"), team(asking_two, answer_both)
    watched.must_change_nothing(asked)
    assert watched.patterns == []
    said = [row.payload for row in watched.rows(Emit) if row.payload]
    assert [one for one in said if "resume" in one] == [
        {"resume": "a? yes"},
        {"resume": "b? yes"},
    ]
    watched.must_be_over()


def test_a_note_to_a_node_whose_state_has_no_messages_is_told_by_an_incident() -> None:
    def split(script: Script) -> Any:
        parts = [Send("work", {"name": "x"}), Send("work", {"name": "x"})]
        a = node(script, "a", lambda state, number: Command(goto=parts))
        work = node(script, "work", lambda state, number: Command(goto=Send("end", {"name": "y"})))
        return graph(script, ["end"], [(START, "a")], a=a, work=work).compile()

    watched = Watched("heal", same_work=True)
    play(team(split), watched)
    assert watched.patterns == ["RSP"]
    assert watched.incidents() == ["note not shown"]


def test_a_user_may_say_how_notes_are_shown() -> None:
    def shown(state: Any, notes: tuple[str, ...]) -> Any:
        return {**state, "name": f"{len(notes)} notes"}

    watched = Watched("heal", late("b"), annotate=shown)
    assert "1 notes" in play(team(chain), watched).per_agent()["b"][0][1]


def test_agents_can_ask_for_their_notes_themselves() -> None:
    heard: list[tuple[str, ...]] = []

    def listening(script: Script) -> Any:
        async def b(state: Any) -> Any:
            heard.append(dig.notes())
            return {"done": ["b"]}

        return graph(script, "a", [(START, "a"), ("a", "b")], b=b).compile()

    play(team(listening), Watched("heal", late("b")))
    assert heard == [("It is late.",)]


# --- what it refuses --------------------------------------------------------------------------


def test_who_demands_that_answers_go_back_needs_a_checkpointer() -> None:
    with pytest.raises(SettingsError, match="cannot bounce"):
        dig.wrap(plain().compile(), mode="heal", require={"bounce"})
    kept = plain().compile(checkpointer=InMemorySaver())
    dig.unwrap(dig.wrap(kept, mode="heal", require={"bounce"}))


def _call(tool: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": {}, "id": "1"}])


@pytest.mark.parametrize(
    ("written", "is_one"),
    [
        ({}, True),
        ({"active_agent": "bob"}, True),
        ({"messages": [_call("transfer_to_bob")]}, True),
        ({"messages": [AIMessage("It rains.")]}, False),
        ({"messages": [_call("weather")]}, False),
        ({"done": ["a"]}, False),
    ],
)  # fmt: skip
def test_who_only_says_who_is_next_has_handed_on_what_it_got(written: Any, is_one: bool) -> None:
    assert is_handoff(written) is is_one


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_a_node_writes_it_arrives_and_is_told_of(name: str) -> None:
    """The wrapper loses track of nothing, so that the team is healed still."""
    odd = HOSTILE[name]
    built: StateGraph[Any] = StateGraph(dict)
    built.add_node("a", lambda state: {"odd": odd, "more": [AIMessage("x"), {"odd": odd}]})
    built.add_node("b", lambda state: state)
    built.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
    watched = Watched("heal")
    result = asyncio.run(watched(built.compile()).ainvoke({"odd": odd}))
    assert result["odd"] is odd
    assert watched.leaves_nothing_open()


@pytest.mark.parametrize("channel", ["branch:to:a", "join:a+b:c"])
def test_a_langgraph_that_is_put_together_in_another_way_is_refused(channel: str) -> None:
    """The message names the part that is missing."""
    built = StateGraph(dict)
    for name in "abc":
        built.add_node(name, lambda state: state)
    graph = built.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c").compile()
    dig.unwrap(dig.wrap(graph))
    del graph.channels[channel]
    with pytest.raises(SettingsError, match=re.escape(f"in another way: no channel {channel}")):
        dig.wrap(graph)


# --- by name, and what a session leaves ---


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("method", ["invoke", "ainvoke", "stream", "astream"])
def test_a_graph_can_be_called_by_name(method: str, mode: Any) -> None:
    """Each argument may be given by its name, as without a monitor."""

    def call(graph: Any) -> Any:
        given = {"input": QUESTION, "config": {"tags": ["x"]}, "stream_mode": "values"}
        return getattr(graph, method)(**given)

    async def told(graph: Any) -> str:
        result = call(graph)
        if method == "ainvoke":
            return str(await result)
        if method == "astream":
            return str([piece async for piece in result])
        return str([*result] if method == "stream" else result)

    bare = plain().compile()
    assert asyncio.run(told(Watched(mode)(bare))) == asyncio.run(told(bare))
    if method in ("stream", "astream"):
        with pytest.raises(TypeError, match="input"):
            getattr(Watched(mode)(bare), method)()


def test_nodes_that_an_enum_names_are_agents_by_their_values() -> None:
    """Edges, gotos and sends between them are told, so that nothing is found in a healthy graph."""
    watched = Watched()
    play(team(by_enum), watched)
    assert {*watched.ran()} >= {"split", "work", "check", "join", "last"}
    assert watched.patterns == []
    watched.must_be_sound()


def test_all_that_a_result_from_a_cache_starts_has_one_origin() -> None:
    """What two nodes made of it meets in a third, as if the first had run."""
    watched = Watched()
    play(team(cached_fan, ask_twice), watched)
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
    watched.must_be_over()


def test_a_join_may_lead_to_the_end() -> None:
    """LangGraph has no channel for it: the graph ends when nothing else is left."""
    watched = Watched()
    wrapped = watched(
        graph(Script(), "ab", [(START, "a"), (START, "b"), (["a", "b"], END)]).compile()
    )
    asyncio.run(wrapped.ainvoke({"done": []}))
    assert watched.patterns == []
    watched.must_be_sound()


def loops() -> int:
    """How many of LangGraph's loops there are in memory."""
    return sum(type(one) is SyncPregelLoop for one in gc.get_objects())


def test_a_request_leaves_nothing_that_only_the_garbage_collector_frees() -> None:
    """LangGraph's loop, which holds the state, goes with its last reference, as it does alone."""
    wrapped = dig.wrap(plain().compile())
    gc.disable()
    try:
        before = loops()
        wrapped.invoke({"done": []})
        assert loops() == before
    finally:
        gc.enable()


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
    emitted = [one for one in watched.rows(Emit) if not one.final]
    told = [one.payload for one in emitted]
    if in_place:
        assert told[-1] == {"history": [asked, {"by": "one"}, {"by": "two"}]}
    else:
        new = {"$given": 2, "$new": [{"by": "two"}]}
        assert told[-1] == {"history": new, "other": [7]}


# --- a game day, and LangGraph's own tests ---


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
    for name, act in nodes.items():
        graph.add_node(name, act)
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


OWN_TESTS = """
import pytest
from langgraph.graph import START, StateGraph

def build():
    built = StateGraph(dict).add_node("a", lambda state: state).add_edge(START, "a")
    return built.compile()

def test_passes():
    assert build().invoke({"x": 1}) == {"x": 1}

def test_looks_at_the_class():
    assert "Monitored" not in type(build()).stream.__code__.co_qualname

@pytest.mark.skip
def test_is_skipped():
    pass
"""


def test_the_plugin_wraps_every_graph_that_is_compiled(tmp_path: Path) -> None:
    """A test that looks at what a wrapper changes fails; a report has what each session saw."""
    (tmp_path / "test_own.py").write_text(OWN_TESTS)
    environment = {
        **os.environ, "DIG_OWN_MODE": "observe", "DIG_OWN_FRAMEWORK": "langgraph",
        "PYTHONPATH": os.pathsep.join([str(HERE), str(Path(dig.__file__).parents[1])]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "wrap_teams", "-p", "no:cacheprovider",
         "--junitxml=report.xml", "test_own.py"],
        cwd=tmp_path, check=False, capture_output=True, env=environment,
    )  # fmt: skip
    observed = Results()
    observed.add(tmp_path / "report.xml", "own")
    passes, looks, skipped = (
        f"own/test_own.py::test_{name}" for name in ("passes", "looks_at_the_class", "is_skipped")
    )
    assert observed.outcomes == {passes: "passed", looks: "failed", skipped: "skipped"}
    assert [(test, team["requests"]) for test, team in observed.teams] == [(passes, 1), (looks, 0)]
    assert observed.wrapped("faults", "stopped", "alarms") == []


def test_a_request_outside_the_sample_takes_no_place_where_healing_may_send_events() -> None:
    """Their ids are those of the sampled request beside it, whose turn is about to end."""
    team = dig.wrap(plain().compile(), sample=0.5)
    session, reasons = dig.session_of(team), list[str | None]()
    assert session.unsampled is not None
    session.leave_out(session.unsampled, partial(next, iter([True, False])))
    leave = GraphRequest._leave

    def leave_slowly(request: GraphRequest, turn: Any, end: Any) -> None:
        def run_another_and_end() -> None:
            wish = Reroute(turn.events[0].id, "again", ("b",))
            reasons.append(session._veto(wish))
            other = Thread(target=team.invoke, args=({"done": []},))
            other.start()
            other.join()
            reasons.append(session._veto(wish))
            end()

        leave(request, turn, end if reasons else run_another_and_end)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GraphRequest, "_leave", leave_slowly)
        team.invoke({"done": []})
    dig.unwrap(team)
    assert reasons == [None, None]
