"""LangGraph, wrapped: what is found in a team, what healing makes of it, and in which words."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph import types
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send

import dig
from dig.adapters.langgraph.routes import as_words, new_in, spoken
from dig.detectors import standard, standard_healers
from dig.detectors.finding import Finding
from dig.detectors.interventions import Reroute
from dig.detectors.policy import HEAL_ALL
from dig.detectors.protocols import Healer
from dig.detectors.thresholds import Thresholds
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, IncidentRow, Limits
from dig.runtime.setup import Setup

from .conformance import REQUESTS, Hanging, Shown
from .framework_watch import ladder
from .harness import Scenario, Script, play
from .langgraph_teams import QUESTION, Step, Watched, ask, graph, node, team, thread


def told(state: Any) -> list[str]:
    """The notes among the messages of a state."""
    return [one.content for one in state.get("messages", []) if one.name == "monitor"]


def half(script: Script) -> Any:
    """`j` waits for `b` and `c`, and `c` is never run."""
    j = node(script, "j", lambda state, number: {"done": ["j", *told(state)]})
    built = graph(script, "abc", [(START, "a"), (["b", "c"], "j")], j=j)
    built.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    return built.compile(checkpointer=InMemorySaver())


async def ask_done(graph: Any) -> Any:
    return (await graph.ainvoke(QUESTION, thread()))["done"]


def test_et_an_answer_without_a_join_that_never_ran_goes_back_and_the_join_runs() -> None:
    watched = Watched("heal")
    outcome = play(team(half, ask_done), watched)
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    assert "'j', 'Work is missing" in str(outcome.returned)
    assert "This answer was submitted while work is missing" in str(outcome.returned)
    assert watched.leaves_nothing_open()


def test_et_an_answer_goes_back_to_nodes_that_an_enum_names() -> None:
    """The node that the answer comes back to runs by its key in the graph."""

    def named(script: Script) -> Any:
        names = [Step.SPLIT, Step.WORK, Step.CHECK]
        j = node(script, "join", lambda state, number: {"done": ["j", *told(state)]})
        built = graph(script, names, [(START, Step.SPLIT)])
        built.add_node(Step.JOIN, j)
        built.add_edge([Step.WORK, Step.CHECK], Step.JOIN)
        built.add_conditional_edges(Step.SPLIT, lambda state: Step.WORK, [Step.WORK, Step.CHECK])
        return built.compile(checkpointer=InMemorySaver())

    watched = Watched("heal")
    outcome = play(team(named, ask_done), watched)
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    assert "'j', 'Work is missing" in str(outcome.returned)


def test_et_without_a_checkpointer_no_answer_can_go_back_and_that_is_said() -> None:
    def kept(script: Script) -> Any:
        bare = half(script)
        bare.checkpointer = None
        return bare

    watched = Watched("heal")
    assert "'j'" not in str(play(team(kept), watched).returned)
    assert watched.patterns == ["ET"] and watched.incidents() == ["downgraded", "never ran"]


def ghost(script: Script) -> Any:
    """`a` hands over to nobody, until it is told."""

    def go(state: Any, number: int) -> Any:
        return Command(goto="b" if told(state) else "ghost", update={"done": ["a"]})

    a = node(script, "a", go)
    return graph(script, "b", [(START, "a")], a=a).compile(checkpointer=InMemorySaver())


def test_et_a_message_to_nobody_is_missing_from_the_answer() -> None:
    """No rerun makes the node appear, so that the answer stands, and the finding with it."""
    watched = Watched("heal")
    outcome = play(team(ghost, ask_done), watched)
    assert outcome.returned == "['?', 'a']"
    assert watched.patterns[0] == "ET" and "reroute" not in watched.healed()


def ping_pong(script: Script) -> Any:
    """Two that think the other one is in charge, until they are told."""

    def hand_to(other: str) -> Any:
        def act(state: Any, number: int) -> Any:
            return {"done": ["solved"]} if told(state) else Command(goto=other)

        return act

    a, b = node(script, "a", hand_to("b")), node(script, "b", hand_to("a"))
    return graph(script, [], [(START, "a")], a=a, b=b).compile()


async def ask_ping_pong(graph: Any) -> Any:
    return await graph.ainvoke(QUESTION, {"recursion_limit": 25})


def twice(script: Script) -> Any:
    """The same part is given to two workers."""

    def plan(state: Any, number: int) -> Any:
        return Command(goto=[Send("work", {"name": name}) for name in ("rome", "oslo", "rome")])

    work = node(script, "work", lambda state, number: {"done": [state["name"]]})
    join = node(script, "join", lambda state, number: {"done": told(state)})
    edges: list[tuple[Any, str]] = [(START, "plan"), ("work", "join")]
    built = graph(script, [], edges, plan=node(script, "plan", plan), work=work, join=join)
    return built.compile()


def shared_out(script: Script) -> Any:
    """The same part is given to two kinds of workers."""

    def plan(state: Any, number: int) -> Any:
        return Command(goto=[Send(name, {"name": "rome"}) for name in ("work", "check")])

    work = node(script, "work", lambda state, number: {"done": [state["name"]]})
    check = node(script, "check", lambda state, number: {"done": [state["name"]]})
    join = node(script, "join", lambda state, number: {"done": told(state)})
    edges: list[tuple[Any, str]] = [(START, "plan"), ("work", "join"), ("check", "join")]
    plan = node(script, "plan", plan)
    return graph(script, [], edges, plan=plan, work=work, check=check, join=join).compile()


def waiting_pair(script: Script) -> Any:
    """Two that wait for each other's word; LangGraph runs them again after a while."""
    words = {"a": asyncio.Event(), "b": asyncio.Event()}
    built = graph(script, [], [(START, "a"), (START, "b")])
    for name, other in ("ab", "ba"):

        def act(name: str = name, other: str = other) -> Any:
            async def wait(state: Any) -> Any:
                async with script.turn(name, told(state)):
                    if not told(state):
                        await words[other].wait()
                    words[name].set()
                    return {"done": [name]}

            return wait

        policy = RetryPolicy(initial_interval=0.1, jitter=False, retry_on=Exception)
        built.add_node(
            name, act(), retry_policy=policy, timeout=types.TimeoutPolicy(run_timeout=30)
        )
    return built.compile()


@pytest.mark.skipif(not hasattr(types, "TimeoutPolicy"), reason="LangGraph has it since 1.2")
def test_dl_two_nodes_that_wait_for_each_other_are_told_when_they_are_tried_again() -> None:
    limits = Limits(dl_window_s=5, activation_limit_s=5)
    setup = Setup(detectors=standard, healers=standard_healers, limits=limits, policy=HEAL_ALL)
    watched = Watched("heal", setup)
    outcome = play(watched.ticking(team(waiting_pair, ask)), watched)
    assert "['?', 'a', 'b']" in str(outcome.returned)
    assert watched.patterns == ["DL"] and watched.healed() == ["create"]
    assert 30 < outcome.elapsed < 40


async def stream_thread(graph: Any) -> Any:
    return [piece async for piece in graph.astream(QUESTION, thread(), stream_mode="updates")]


def test_et_a_stream_goes_on_with_what_runs_once_more() -> None:
    outcome = play(team(half, stream_thread), Watched("heal"))
    assert str(outcome.returned).startswith(
        "[{'a': {'done': ['a']}}, {'b': {'done': ['b']}}, {'j':"
    )


class ToSomebodyElse(Healer):
    """A healer that takes what goes round away from those who pass it round."""

    def heal(self, monitored: InteractionGraph, finding: Finding) -> Iterable[Reroute]:
        yield Reroute(finding.subject["event"], "Nobody wants this.", ("c",))


def test_er_what_goes_round_can_be_sent_to_somebody_else() -> None:
    def trio(script: Script) -> Any:
        a = node(script, "a", lambda state, number: Command(goto="b"))
        b = node(script, "b", lambda state, number: Command(goto="a"))
        c = node(script, "c", lambda state, number: {"done": ["c", *told(state)]})
        return graph(script, [], [(START, "a")], a=a, b=b, c=c).compile()

    def healers() -> Any:
        return {"ER": ToSomebodyElse()}

    setup = Setup(detectors=standard, healers=healers, policy=HEAL_ALL)
    watched = Watched("heal", setup)
    outcome = play(team(trio, ask_ping_pong), watched)
    assert "['?', 'c', 'Nobody wants this.']" in str(outcome.returned)
    assert watched.patterns == ["ER"] and watched.healed() == ["reroute"]
    watched.must_be_over()


def crowded(shown: Shown) -> Scenario:
    """`ask` and `store` talk until they are told, for some requests; for some `ask` hangs."""

    def build(script: Script) -> Any:
        def number_of(state: Any) -> int:
            number = int(state["name"].split()[-1])
            shown.append((number, dig.notes_about()))
            return number

        async def ask(state: Any) -> Any:
            number = int(state["name"].split()[-1])
            await asyncio.sleep(30 if number % 10 == 5 and not state["done"] else number % 7)
            number_of(state)
            goes_on = number % 10 == 0 and len(state["done"]) < 12 and not told(state)
            return Command(goto="store" if goes_on else "last", update={"done": ["how many?"]})

        async def store(state: Any) -> Any:
            await asyncio.sleep(1)
            number_of(state)
            return Command(goto="last" if told(state) else "ask", update={"messages": ["four"]})

        async def last(state: Any) -> Any:
            await asyncio.sleep(1)
            return {"name": f"{number_of(state)} is done"}

        return graph(script, [], [(START, "ask")], ask=ask, store=store, last=last).compile()

    async def drive(team: Any) -> Any:
        questions = [{"name": f"request {number}", "done": []} for number in range(REQUESTS)]
        return await asyncio.gather(*map(team.ainvoke, questions))

    return Scenario("crowd", build, drive)


# --- ids are no words, and notes reach a node that can read them ---

MakeId = Callable[[], str]
CONSTANT: MakeId = lambda: "call_1"  # noqa: E731
UNIQUE: MakeId = lambda: f"call_{uuid4().hex}"  # noqa: E731


def setup() -> Setup:
    return Setup(
        detectors=standard, healers=standard_healers, limits=Thresholds().limits, policy=HEAL_ALL
    )


@pytest.mark.parametrize(
    "message",
    [
        lambda i: AIMessage("", id=i, tool_calls=[{"name": "f", "args": {"x": 1}, "id": i}]),
        lambda i: ToolMessage("4", tool_call_id=i, id=i),
        lambda i: AIMessage([{"type": "text", "text": "hi", "id": i}], id=i),
        lambda i: AIMessage([{"type": "tool_use", "id": i, "name": "f", "input": {}}]),
        lambda i: {"role": "tool", "content": "4", "tool_call_id": i},
        lambda i: [{"type": "tool_call", "name": "f", "args": {}, "id": i}],
        lambda i: {"__type": "tool_call_with_context", "state": {"messages": [i]},
                   "tool_call": {"type": "tool_call", "name": "f", "args": {}, "id": i}},
        lambda i: Command(resume={i: "yes"}),
    ],
)  # fmt: skip
def test_an_id_that_is_new_for_each_call_stands_in_no_payload(
    message: Callable[[str], Any],
) -> None:
    """Two messages that differ in their ids alone are told alike, and their words are kept."""
    first, second = (as_words({"messages": message(uuid4().hex)}) for _ in range(2))
    assert first == second and len(str(first)) > 20


def test_an_id_that_a_user_has_made_is_a_word() -> None:
    """An order is another one if its number is another one."""
    assert as_words({"type": "order", "id": 17}) == {"type": "order", "id": 17}


def handing_over(make_id: MakeId, whole: bool) -> Any:
    """Two that each connect to the other one, in the same words."""

    def agent(me: str, you: str) -> Any:
        def node(state: Any) -> Any:
            call = {"name": f"transfer_to_{you}", "args": {}, "id": make_id()}
            said = AIMessage("Not my department.", name=me, id=make_id(), tool_calls=[call])
            messages = [*state["messages"], said] if whole else [said]
            return Command(goto=you, update={"messages": messages})

        return node

    built = StateGraph(MessagesState)
    built.add_node("alice", agent("alice", "bob")).add_node("bob", agent("bob", "alice"))
    return built.add_edge(START, "alice").compile()


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("whole", [False, True], ids=["what is new", "whole history"])
def test_a_loop_is_found_with_unique_ids_as_with_constant_ones(mode: str, whole: bool) -> None:
    """So it is if each node returns all messages, also when it was shown a note among them."""
    found = []
    for make_id in (UNIQUE,) if whole else (CONSTANT, UNIQUE):
        watched = Watched(mode, setup())
        with pytest.raises(GraphRecursionError):
            watched(handing_over(make_id, whole)).invoke(
                {"messages": [HumanMessage("refund")]}, {"recursion_limit": 45}
            )
        found.append([(one.pattern, one.severity) for one in watched.session.findings])
        assert watched.leaves_nothing_open()
    assert found[0] == found[-1]
    assert [one for one in found[0] if one[0] == "LOOP"] == [
        ("LOOP", "warning")
    ] * 4 + [("LOOP", "error")] * 2  # fmt: skip


def test_of_a_history_that_is_returned_whole_the_payload_has_what_is_new() -> None:
    """A note that the node was shown is not part of it."""
    given = [HumanMessage("a", id="1"), AIMessage("b", id="2")]
    note = HumanMessage("Stop.", id="dig-note-1", name="monitor")
    new = AIMessage("c", id="3")
    for before in (given, [*given, note]):
        told = new_in({"messages": [*given, new]}, {"messages": before})
        assert told == {"messages": {"$given": 2, "$new": [new]}}


# --- notes --------------------------------------------------------------------------------------


@tool  # type: ignore[untyped-decorator]
def stock(item: str) -> str:
    """How many are left."""
    return "4"


def asking(seen: list[list[str]]) -> Any:
    """A model that asks the same tool eight times, and tells what notes it has seen."""

    def model(state: Any) -> Any:
        said = state["messages"]
        seen.append([one.content for one in said if one.name == "monitor"])
        calls = [{"name": "stock", "args": {"item": "melon"}, "id": UNIQUE()}]
        is_over = sum(one.type == "ai" for one in said) == 8
        return {
            "messages": [AIMessage("done" if is_over else "", tool_calls=[] if is_over else calls)]
        }

    def following(state: Any) -> str:
        return "tools" if state["messages"][-1].tool_calls else END

    built = StateGraph(MessagesState)
    built.add_node("model", model).add_node("tools", ToolNode([stock]))
    built.add_conditional_edges("model", following, ["tools", END])
    built.add_edge(START, "model").add_edge("tools", "model")
    return built.compile(checkpointer=InMemorySaver())


def test_a_note_about_a_call_of_a_tool_reaches_the_model() -> None:
    """A node of tools reads none, so the node that gets its results is shown it, and once."""
    seen: list[list[str]] = []
    watched = Watched("heal", setup(), tools=True)
    config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 60}
    said = watched(asking(seen)).invoke({"messages": [("user", "melons?")]}, config)["messages"]
    assert said[-1].content == "done" and not any(one.name == "monitor" for one in said)
    looping = [one.subject["event"] for one in watched.session.findings if one.pattern == "LOOP"]
    emits = watched.rows(Emit)
    assert "tool_call" in {row.type for row in emits if row.event in looping}
    notes = [note for notes in seen for note in notes]
    assert notes and all("5 times" in note for note in notes)
    assert all(len({*notes}) == len(notes) for notes in seen)
    assert seen[:5] == [[]] * 5
    assert "note not shown" not in watched.incidents()


class Words(TypedDict):
    """A state without messages."""

    said: Annotated[list[str], operator.add]


def test_where_no_node_comes_after_the_tool_an_incident_says_that_nobody_reads_the_note() -> None:
    """The node calls the tool itself, and is the last one."""

    def works(state: Any) -> Any:
        return {"said": [stock.invoke({"item": "melon"}) for _ in range(8)]}

    built = StateGraph(Words)
    built.add_node("works", works).add_edge(START, "works")
    watched = Watched("heal", setup(), tools=True)
    watched(built.compile()).invoke({"said": []})
    assert "LOOP" in watched.patterns
    (incident,) = [r.detail for r in watched.rows(IncidentRow) if r.what == "note not shown"]
    assert incident["node"] == "works" and incident["notes"] >= 1
    assert watched.session.statistics().faults == 0


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"messages": [AIMessage("yes")]}, "yes"),
        ({"messages": [("user", "why?")]}, "why?"),
        ({"messages": {"$given": 2, "$new": [AIMessage("")]}}, ""),
    ],
)
def test_one_message_alone_stands_for_its_text(payload: Any, text: str) -> None:
    """An answer that is wrapped in a state is read as any other."""
    assert spoken(as_words(payload)) == text


@pytest.mark.parametrize(
    "payload",
    [
        {"messages": [AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}])]},
        {"messages": [AIMessage("a"), AIMessage("b")]},
        {"messages": [AIMessage("a")], "done": True},
        {"messages": [AIMessage([{"type": "text", "text": "a"}])]},
        {"messages": {"$given": 2}},
        [{"messages": [AIMessage("a")]}],
        "a text",
    ],
)
def test_any_other_payload_stays_as_it_is(payload: Any) -> None:
    words = as_words(payload)
    assert spoken(words) == words


# --- a node hangs, and another one's function is run in its place ---


def hanging(script: Script, takes: Any = None, *, stubborn: bool = False) -> Any:
    """`a`, then `b`, then `c`; `b`'s fifth turn takes ten minutes. `d` is never run."""
    turns: list[int] = []

    async def b(state: Any) -> Any:
        turns.append(1)
        if len(turns) == 5:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                if not stubborn:
                    raise
        return {"done": ["b"]}

    edges = [(START, "a"), ("a", "b"), ("b", "c"), ("c", END), ("d", END)]
    built = graph(script, "acd")
    built.add_node("b", b, input_schema=takes)
    for source, target in edges:
        built.add_edge(source, target)
    return built.compile()


async def ask_five_times(graph: Any) -> Any:
    """Five requests."""
    for _ in range(4):
        await graph.ainvoke(QUESTION)
    return (await graph.ainvoke(QUESTION))["done"]


HANGING = Hanging(hanging, ask_five_times, r"\['\?', 'a', '[acd]', 'c'\]", "'b'", downgrades=True)


class Other(TypedDict, total=False):
    """A state that only one node takes."""

    done: list[str]


def typed(script: Script) -> Any:
    """As `hanging`, but `b` takes a state of its own, which no other node takes."""
    return hanging(script, takes=Other)


def test_a_node_that_takes_another_state_is_not_asked() -> None:
    """What is given to a node is given to another only if both have one input schema."""
    watched = Watched("heal", ladder(), allow={"reassign"})
    assert "'b'" in str(play(replace(HANGING, build=typed).asked(watched)).returned)
    assert watched.patterns[0] == "STALL" and "reassign" not in watched.healed()
