"""LangGraph, wrapped: ids are no words, and notes reach a node that can read them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from dig.adapters.langgraph.routes import as_words, new_in, spoken
from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.detectors.thresholds import Thresholds
from dig.graph.records import Emit, IncidentRow
from dig.runtime.host import Setup

from .langgraph_watch import Watched

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
    emits = [row for row in watched.records if isinstance(row, Emit)]
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
    (incident,) = [
        row.detail for row in watched.records
        if isinstance(row, IncidentRow) and row.what == "note not shown"
    ]  # fmt: skip
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
