"""LangGraph, wrapped: it is used as before; what it holds, shows, refuses and leaves."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Send, interrupt

import dig
from dig import Detector, Healer, Hold
from dig.adapters.langgraph.routes import is_handoff
from dig.detectors import standard
from dig.detectors.finding import Finding
from dig.detectors.interventions import Inject, Intervention, Reroute
from dig.detectors.policy import HEAL_ALL
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, IncidentRow, Record
from dig.monitor.messages import Pending
from dig.runtime.host import Setup

from .harness import Scenario, Script, play
from .hostile_payloads import HOSTILE
from .langgraph_asked import QUESTION, answer_back, thread
from .langgraph_teams import (
    State,
    around,
    asking,
    chain,
    failing,
    fan,
    graph,
    half_join,
    node,
    subgraph,
)
from .langgraph_watch import Watched, seats, team


def plain(names: str = "ab", **more: Any) -> Any:
    """A graph of nodes that need no script, one after the other."""
    built: StateGraph[Any] = StateGraph(State)
    for name in names:
        built.add_node(name, lambda state, name=name: {"done": [name]}, **more)
    for one, other in zip([START, *names], [*names, END], strict=True):
        built.add_edge(one, other)
    return built


def over_to_west(script: Script) -> Any:
    """A graph that hands over to a node of the graph above it."""
    leave = Command(goto="west", graph=Command.PARENT, update={"done": ["a"]})
    return graph(
        script, "b", [(START, "a"), (START, "b")], a=node(script, "a", lambda s, n: leave)
    ).compile()


async def ask_thread(wrapped: Any) -> Any:
    return await wrapped.ainvoke(QUESTION, thread())


HEALED_TWICE = team(half_join, ask_thread)
INNER = [team(build, ask_thread) for build in (fan, subgraph, failing, over_to_west)]
INNER += [HEALED_TWICE, team(asking, answer_back)]


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
    def nested(wrap: Callable[[Any], Any]) -> Scenario:
        def build(script: Script) -> Any:
            return around(script, wrap(scenario.build(script)))

        return Scenario(scenario.name, build, scenario.drive)

    watched = Watched(mode)
    assert play(nested(watched)) == play(nested(lambda inner: inner))
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

    wrapped = dig.wrap(build())
    question = {"messages": [("user", "Rome?")]}
    assert said(wrapped.invoke(question)) == said(build().invoke(question))
    assert {"model", "tools", "tools#2"} <= seats(dig.session_of(wrapped).monitor.graph)


# --- what it holds and changes ----------------------------------------------------------------


class Slow:
    """A gate that keeps what goes to one node for a while, and may send it elsewhere then."""

    name = "slow"

    def __init__(self, to: str, *then: Intervention) -> None:
        self.to, self.then = to, then

    def hold(self, monitored: InteractionGraph, event: Pending) -> Hold | None:
        return Hold(60.0) if self.to in monitored.event(event.id).flight else None

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        await asyncio.sleep(5)
        return [Inject(event.id, "It is late.")]


def test_a_gate_holds_a_node_before_it_runs_while_another_goes_on() -> None:
    def pair(script: Script) -> Any:
        return graph(script, "abc", [(START, "a"), ("a", "b"), ("a", "c")]).compile()

    watched = Watched("heal", Setup(gates=[Slow("b")]))
    bare, held = play(team(pair)), play(team(pair), watched)
    assert bare.elapsed + 4 < held.elapsed < bare.elapsed + 5.5
    ends = [agent for agent, what, _ in held.log if what == "ends"]
    assert ends == ["a", "c", "b"]
    assert "It is late." in held.per_agent()["b"][0][1]
    assert watched.leaves_nothing_open()


def test_what_the_last_node_says_is_held_before_it_is_submitted() -> None:
    watched = Watched("heal", Setup(detectors=standard, gates=[Slow("__end__")]))
    bare, held = play(team(chain)), play(team(chain), watched)
    assert held.returned == bare.returned
    assert held.elapsed == pytest.approx(bare.elapsed + 5)
    assert watched.patterns == [] and watched.leaves_nothing_open()


class Hanging(Slow):
    """A gate that never decides."""

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        await asyncio.Event().wait()
        return []


def test_a_gate_that_never_decides_holds_no_longer_than_it_said() -> None:
    watched = Watched("heal", Setup(gates=[Hanging("b")]))
    bare, held = play(team(chain)), play(team(chain), watched)
    assert held.returned == bare.returned
    assert held.elapsed == pytest.approx(bare.elapsed + 60)
    assert watched.leaves_nothing_open()


def test_on_a_thread_nobody_can_wait_for_a_gate_and_that_is_told() -> None:
    told: list[Record] = []
    gates = Setup(gates=[Slow("b")])
    wrapped = dig.wrap(plain().compile(), mode="heal", setup=gates, sink=told.append)
    assert wrapped.invoke(QUESTION)["done"] == ["?", "a", "b"]
    assert "not held" in [one.what for one in told if isinstance(one, IncidentRow)]


@pytest.mark.parametrize("step", range(1, 40, 2))
def test_a_request_that_is_cancelled_while_something_is_held_leaves_nothing(step: int) -> None:
    watched = Watched("heal", Setup(gates=[Slow("b")]))
    held = play(team(chain), watched, cancel_at=step)
    assert held.cancelling == (1 if held.raised else 0)
    assert watched.leaves_nothing_open()


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


@pytest.mark.parametrize(
    ("to", "ran"),
    [(("c",), "ac"), (("b", "c"), "abcc"), (("d", "c"), "acd"), (("ghost",), "abc"), ((), "a")],
    ids=str,
)
def test_a_message_on_a_static_edge_can_be_sent_elsewhere_before_it_arrives(
    to: tuple[str, ...], ran: str
) -> None:
    def line(script: Script) -> Any:
        return graph(script, "abcd", [(START, "a"), ("a", "b"), ("b", "c")]).compile()

    def setup() -> Setup:
        elsewhere = Elsewhere("b", *to)
        return Setup(
            detectors=lambda: [elsewhere], healers=lambda: {"ELSEWHERE": elsewhere}, policy=HEAL_ALL
        )

    watched = Watched("heal", setup())
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
    assert play(asked, watched) == play(asked)
    assert watched.patterns == []
    said = [row.payload for row in watched.records if isinstance(row, Emit) and row.payload]
    assert [one for one in said if "resume" in one] == [
        {"resume": "a? yes"},
        {"resume": "b? yes"},
    ]
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


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

    watched = Watched("heal", Setup(gates=[Slow("b")]), annotate=shown)
    assert "1 notes" in play(team(chain), watched).per_agent()["b"][0][1]


def test_agents_can_ask_for_their_notes_themselves() -> None:
    heard: list[tuple[str, ...]] = []

    def listening(script: Script) -> Any:
        async def b(state: Any) -> Any:
            heard.append(dig.notes())
            return {"done": ["b"]}

        return graph(script, "a", [(START, "a"), ("a", "b")], b=b).compile()

    play(team(listening), Watched("heal", Setup(gates=[Slow("b")])))
    assert heard == [("It is late.",)]


# --- what it refuses --------------------------------------------------------------------------


def test_what_is_no_compiled_graph_is_refused() -> None:
    with pytest.raises(SettingsError, match="compile it first"):
        dig.wrap(plain())


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
