"""LangGraph, wrapped: a node that asks a person waits, and nothing is raised while they think."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from dig.adapters.langgraph import stops
from dig.graph.records import Emit, End, IncidentRow, Start

from . import langgraph_teams
from .harness import Script
from .langgraph_teams import around, thread
from .test_langgraph_stops import Edges, graph, kept, opened, payment, told

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])
QUESTION = {"done": ["?"]}
LONG = 100_000.0
"""Seconds that a person thinks, far beyond every threshold."""


class Watched(langgraph_teams.Watched):
    """Wraps graphs, at a time that only goes when a test says so."""

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float = LONG) -> None:
        """Time goes by, a step of a second's fraction of it at a time."""
        for _ in range(10):
            self.now += seconds / 10
            self.session.tick()

    @property
    def waiting(self) -> list[str]:
        """The agents whose activations say that they wait, in order."""
        agents = {row.activation: row.agent for row in self.rows(Start)}
        said = [row.detail for row in self.rows(IncidentRow) if row.what == "waits"]
        return [agents[detail["activation"]] for detail in said]


def legal(state: Any) -> dict[str, Any]:
    return {"done": [interrupt("Legal?")]}


def approving() -> Any:
    """`legal` asks a person; `pay` waits for it and for `risk`."""
    return kept(payment(legal=legal))


@MODES
def test_a_node_that_asks_a_person_waits_and_no_answer_comes_of_it(mode: str) -> None:
    """However long the person thinks, nothing is overdue, in no mode; then all is as before."""
    watched, bare = Watched(mode), approving()
    team = watched(approving())
    for given in (QUESTION, Command(resume="yes")):
        found, expected = team.invoke(given, thread()), bare.invoke(given, thread())
        assert str(found["done"]) == str(expected["done"])
        if given is QUESTION:
            assert "__interrupt__" in found
            assert watched.waiting == ["legal"] and watched.answers() == []
            watched.wait()
            assert opened(watched) == 1
    assert watched.answers() == [{"done": ["pay"]}]
    assert (watched.patterns, watched.healed()) == ([], [])
    watched.must_be_over()


def test_the_question_and_the_way_to_answer_it_are_in_the_trace() -> None:
    """Also after a restart of the turn, and without secrets."""
    watched = Watched("observe")
    team = watched(
        kept(payment(legal=lambda state: {"done": [interrupt("May I? sk-" + 40 * "a")]}))
    )
    team.invoke(QUESTION, thread())
    (detail,) = [row.detail for row in watched.rows(IncidentRow) if row.what == "waits"]
    (asked,) = detail["asks"]
    assert asked.startswith("May I? ") and "aaaa" not in asked
    assert "Command(resume=...)" in detail["answer"]


def test_what_comes_after_the_answer_is_an_activation_of_its_own() -> None:
    """The waiting one ends when the answer is there, with that in its continuation."""
    watched = Watched()
    team = watched(approving())
    team.invoke(QUESTION, thread())
    waits = next(row for row in watched.rows(IncidentRow) if row.what == "waits")
    assert waits.detail["activation"] not in {row.activation for row in watched.rows(End)}
    team.invoke(Command(resume="yes"), thread())
    (end,) = [row for row in watched.rows(End) if row.activation == waits.detail["activation"]]
    answer = next(row for row in watched.rows(Emit) if row.payload == {"resume": "yes"})
    (after,) = [row for row in watched.rows(Start) if answer.event in row.inputs]
    assert after.agent == "legal" and after.inputs == end.outputs == (answer.event,)
    assert (answer.type, answer.to) == ("notice", ("legal",))


def test_a_node_that_hangs_after_the_approval_is_found() -> None:
    """What it did not do before it asked does not hide that it does nothing now."""

    begun = asyncio.Event()

    async def hanging(state: Any) -> dict[str, Any]:
        said = interrupt("Legal?")
        begun.set()
        await asyncio.Event().wait()
        return {"done": [said]}

    async def main() -> None:
        watched = Watched()
        edges: Edges = [(START, "quick"), ("quick", "legal")]
        built = graph("", edges, quick=lambda state: {"done": ["quick"]}, legal=hanging)
        team = watched(kept(built))
        await team.ainvoke(QUESTION, thread())
        watched.wait()
        assert watched.patterns == []
        task = asyncio.create_task(team.ainvoke(Command(resume="yes"), thread()))
        await begun.wait()
        watched.wait()
        assert [(one.pattern, one.is_alarm) for one in watched.session.findings] == [("MC", True)]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


@MODES
@pytest.mark.parametrize("name", ["interrupt_before", "interrupt_after"])
def test_at_a_breakpoint_the_nodes_wait_that_come_next(mode: str, name: str) -> None:
    """So a join that is made waits, and one that is half made does not."""
    watched = Watched(mode)
    nodes = {"interrupt_before": ["pay"], "interrupt_after": ["risk", "legal"]}[name]
    team = watched(kept(payment(), **{name: nodes}))
    team.invoke(QUESTION, thread())
    watched.wait()
    assert watched.waiting == ["pay"] and watched.answers() == []
    assert team.invoke(None, thread())["done"][-1] == "pay"
    assert watched.answers() == [{"done": ["pay"]}]
    assert watched.patterns == []
    watched.must_be_over()


def both() -> Any:
    """Two nodes of one step ask."""
    built = graph(
        "w", [(START, "a"), (START, "b"), (["a", "b"], "w")],
        a=lambda state: {"done": [interrupt("a?")]}, b=lambda state: {"done": [interrupt("b?")]},
    )  # fmt: skip
    return kept(built)


@MODES
def test_two_nodes_of_one_thread_may_ask_and_be_answered_one_after_the_other(mode: str) -> None:
    """The one that has no answer yet asks again; each hears its own, and is no CLA."""
    watched = Watched(mode)
    team = watched(both())
    asked = team.invoke(QUESTION, thread())["__interrupt__"]
    assert watched.waiting == ["a", "b"]
    for question in asked:
        watched.wait()
        said = team.invoke(Command(resume={question.id: f"{question.value} yes"}), thread())
    assert said["done"] == ["?", "a? yes", "b? yes", "w"]
    answers = [row.payload for row in watched.rows(Emit) if "resume" in (row.payload or ())]
    assert answers == [{"resume": "a? yes"}, {"resume": "b? yes"}]
    assert watched.waiting == ["a", "b", "b"] and len(watched.answers()) == 1
    assert watched.patterns == []
    watched.must_be_over()


@MODES
def test_forty_threads_may_wait_at_once_and_none_is_passed_over(mode: str) -> None:
    """Each is answered in its own thread, later than all others began, in another order."""
    watched, bare = Watched(mode), approving()
    team, numbers = watched(approving()), range(40)
    for number in numbers:
        found = team.invoke(QUESTION, thread(number))
        assert found["done"] == bare.invoke(QUESTION, thread(number))["done"]
    watched.wait()
    assert opened(watched) == 40 and watched.answers() == []
    assert all(team.get_state(thread(number)).next == ("legal",) for number in numbers)
    for number in reversed(numbers):
        said = team.invoke(Command(resume=f"yes {number}"), thread(number))["done"]
        assert said == ["?", f"yes {number}", "risk", "pay"]
        watched.now += 1
    assert len(watched.answers()) == 40
    assert (watched.patterns, watched.healed()) == ([], [])
    watched.must_be_over()


def test_a_resume_in_another_process_begins_from_outside() -> None:
    """The session there does not know of the turn that waits, and finds nothing missing."""
    saver = InMemorySaver()
    first, second = Watched(), Watched("heal")
    first(payment(legal=legal).compile(checkpointer=saver)).invoke(QUESTION, thread())
    team = second(payment(legal=legal).compile(checkpointer=saver))
    assert team.invoke(Command(resume="yes"), thread())["done"] == ["?", "yes", "risk", "pay"]
    assert second.patterns == [] and second.leaves_nothing_open()
    assert opened(first) == 1
    second.must_be_sound()


def test_another_question_in_a_thread_that_waits_calls_the_waiting_off() -> None:
    """LangGraph begins anew then; the first request is no failed one, since its caller left it."""
    watched, bare = Watched(), approving()
    team = watched(approving())
    for one in (team, bare):
        one.invoke(QUESTION, thread())
    assert str(team.invoke(QUESTION, thread())["done"]) == str(
        bare.invoke(QUESTION, thread())["done"]
    )
    assert opened(watched) == 1
    ended = [row for row in watched.rows(End) if row.error]
    assert ended and all(row.cancelled for row in ended)
    assert "request_failed" not in watched.incidents()
    watched.wait()
    assert watched.patterns == []
    team.invoke(Command(resume="yes"), thread())
    assert watched.leaves_nothing_open()


def test_of_too_many_threads_that_wait_the_oldest_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Memory is bounded; its turn is called off, and a resume begins from outside."""
    monkeypatch.setattr(stops, "MOST_PAUSED", 3)
    watched = Watched()
    team = watched(approving())
    for number in range(5):
        team.invoke(QUESTION, thread(number))
    assert opened(watched) == 3
    assert [row.cancelled for row in watched.rows(End) if row.error] == [True] * 4
    assert "request_failed" not in watched.incidents()
    for number in range(5):
        said = team.invoke(Command(resume="yes"), thread(number))["done"]
        assert said == ["?", "yes", "risk", "pay"]
    watched.wait()
    assert watched.patterns == []
    watched.must_be_over()


def test_a_resume_that_langgraph_refuses_leaves_the_waiting_as_it_was() -> None:
    """Two questions are open, and the answer does not say to which it belongs."""
    watched = Watched()
    team = watched(both())
    asked = team.invoke(QUESTION, thread())["__interrupt__"]
    with pytest.raises(RuntimeError, match="multiple pending interrupts"):
        team.invoke(Command(resume="yes"), thread())
    assert opened(watched) == 2 and watched.answers() == []
    team.invoke(Command(resume={one.id: "yes" for one in asked}), thread())
    assert len(watched.answers()) == 1 and watched.leaves_nothing_open()


def test_an_error_after_the_answer_is_an_error_of_the_request() -> None:
    """What was asked first has no answer; what the person said is no request of its own."""

    def fails(state: Any) -> Any:
        raise ValueError(interrupt("Legal?"))

    watched = Watched()
    team = watched(kept(payment(legal=fails)))
    team.invoke(QUESTION, thread())
    with pytest.raises(ValueError, match="no money"):
        team.invoke(Command(resume="no money"), thread())
    (failed,) = [r for r in watched.rows(End) if r.error and not (r.cancelled or r.because)]
    (said,) = [row.detail for row in watched.rows(IncidentRow) if row.what == "request_failed"]
    assert (said["activation"], said["event"]) == (failed.activation, "e1")
    assert watched.patterns == ["FAIL", "FAIL"]
    assert watched.answers() == []
    watched.must_be_over()


@MODES
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("asks", [legal, None], ids=["interrupt", "breakpoint"])
def test_a_node_within_a_graph_that_is_a_node_waits_likewise(
    mode: str, inside: bool, asks: Callable[[Any], Any] | None
) -> None:
    """With `inside` it is the node within that waits; the graph around it awaits its answer."""
    built = payment(**({"legal": asks} if asks else {}))
    stops_before = {} if asks else {"interrupt_before": ["pay"]}
    watched = Watched(mode, inside=inside)
    team = watched(around(Script(), built.compile(**stops_before)))
    asyncio.run(team.ainvoke(QUESTION, thread()))
    watched.wait()
    name = "legal" if asks else "pay"
    assert watched.waiting == [f"team/{name}" if inside else "team"] and watched.answers() == []
    said = asyncio.run(team.ainvoke(Command(resume="yes"), thread()))
    assert said["done"][-1] == "pay" and len(watched.answers()) == 1
    assert (watched.patterns, watched.healed()) == ([], [])
    watched.must_be_over()


def test_a_graph_that_is_a_node_of_another_one_that_is_not_watched_waits_likewise() -> None:
    """The thread is that of the outer graph."""
    watched = Watched()
    team = around(Script(), watched(payment(legal=legal).compile()))
    asyncio.run(team.ainvoke(QUESTION, thread()))
    assert watched.waiting == ["legal"] and watched.answers() == []
    asyncio.run(team.ainvoke(Command(resume="yes"), thread()))
    assert len(watched.answers()) == 1 and watched.leaves_nothing_open()


def test_where_no_thread_is_kept_the_question_is_the_answer() -> None:
    """Nobody can go on with such a request, so nothing waits for that."""
    watched = Watched()
    watched(payment(legal=legal).compile()).invoke(QUESTION)
    assert watched.waiting == [] and len(watched.answers()) == 1
    assert watched.leaves_nothing_open()


@pytest.mark.parametrize("tools", [False, True])
def test_a_tool_that_asks_a_person_has_its_node_wait_and_has_not_failed(tools: bool) -> None:
    """With tools shown the call is called off, and made again with the answer."""
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.graph import MessagesState
    from langgraph.prebuilt import ToolNode

    @tool  # type: ignore[untyped-decorator]
    def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}, {interrupt('Pay?')}"

    call = AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": 5}, "id": "call_1"}])
    built: StateGraph[Any] = StateGraph(MessagesState)
    built.add_node("model", lambda state: {"messages": [call]})
    built.add_node("tools", ToolNode([pay]))
    built.add_edge(START, "model").add_edge("model", "tools").add_edge("tools", END)
    watched = Watched(tools=tools)
    team = watched(kept(built))
    team.invoke({"messages": [("user", "pay")]}, thread())
    watched.wait()
    assert watched.waiting == ["tools"] and watched.answers() == []
    said = team.invoke(Command(resume="yes"), thread())["messages"][-1]
    assert said.content == "paid 5, yes"
    assert all(row.cancelled for row in watched.rows(End) if row.error)
    assert watched.patterns == [] and opened(watched) == 0 and len(watched.answers()) == 1
    watched.must_be_sound()


def test_the_middleware_that_asks_about_tools_has_its_node_wait() -> None:
    """`HumanInTheLoopMiddleware` of LangChain is a node that interrupts."""
    agents = pytest.importorskip("langchain.agents", reason="langchain is not installed")
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Model(GenericFakeChatModel):  # type: ignore[misc]
        def bind_tools(self, tools: Any, **more: Any) -> Any:
            return self

    def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    call = {"name": "pay", "args": {"amount": 5}, "id": "call_1"}
    said = [AIMessage("", tool_calls=[call]), AIMessage("It is paid.")]
    asks = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    watched = Watched("heal")
    team = watched(
        agents.create_agent(
            Model(messages=iter(said)), [pay], middleware=[asks], checkpointer=InMemorySaver()
        )
    )
    team.invoke({"messages": [("user", "pay")]}, thread())
    watched.wait()
    assert len(watched.waiting) == 1 and watched.answers() == []
    answer = Command(resume={"decisions": [{"type": "approve"}]})
    assert team.invoke(answer, thread())["messages"][-1].content == "It is paid."
    assert watched.patterns == [] and watched.leaves_nothing_open()


def test_a_state_that_somebody_changes_while_a_node_waits_is_gone_on_with() -> None:
    """LangGraph gives the task of the node another id then."""
    watched = Watched()
    edges: Edges = [(START, "a"), ("a", "legal"), ("legal", "pay")]
    team = watched(kept(graph("a", edges, legal=legal, pay=lambda state: {"done": ["pay"]})))
    team.invoke(QUESTION, thread())
    team.update_state(thread(), {"name": "Ada"})
    said = team.invoke(Command(resume="yes"), thread())
    assert said["done"] == ["?", "a", "yes", "pay"] and len(watched.answers()) == 1
    assert watched.patterns == [] and watched.leaves_nothing_open()


def sent_on(first: str, second: str, asks: bool) -> tuple[Any, Callable[[Any], Any]]:
    """A person answers at `first`, and sends the graph to `second` as well."""
    other = [told("x"), legal][asks]
    edges: Edges = [(START, first), (START, "x")] + ([] if asks else [(first, second)])
    built = graph(second, edges, x=told("x"), **{first: other})
    team = kept(built, **({} if asks else {"interrupt_before": [first]}))
    return team, lambda given: given.invoke(Command(goto=[second], resume="yes"), thread())


def done_again(update: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A person answers at an earlier place of the thread, so that a node runs again."""

    def answer(team: Any) -> Any:
        paused = team.get_state(thread()).config
        team.update_state(thread(), None)
        return team.invoke(Command(resume="yes", update=update), paused)

    return kept(graph("x", [(START, "x"), (START, "legal")], legal=legal)), answer


@MODES
@pytest.mark.parametrize(
    ("build", "more"),
    [
        *((sent_on, (*names, asks)) for names in ("ab", "ba") for asks in (False, True)),
        *((done_again, (update,)) for update in (None, {"name": "Ada"})),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_what_goes_on_beside_an_answer_belongs_to_the_request(
    build: Callable[..., tuple[Any, Callable[[Any], Any]]], more: Any, mode: str
) -> None:
    """Whoever runs first: the answers of before and after have one origin, and are no CLA."""
    (bare, answer), (built, _) = build(*more), build(*more)
    watched = Watched(mode)
    team = watched(built)
    for each in (bare, team):
        each.invoke(QUESTION, thread())
    assert str(answer(team)) == str(answer(bare))
    assert (watched.patterns, watched.healed()) == ([], [])
    assert len([row for row in watched.rows(Emit) if row.by is None]) == len(watched.answers()) == 1
    assert not any(row.error for row in watched.rows(End)) and watched.leaves_nothing_open()
    watched.must_be_sound()


def test_a_node_that_a_person_starts_is_not_started_by_a_node_beside_it() -> None:
    """What `a` says in the same step is for the next one."""
    watched = Watched()
    team = watched(kept(graph("ab", [(START, "a"), ("a", "b")]), interrupt_before=["a"]))
    team.invoke(QUESTION, thread())
    team.invoke(Command(goto=["b"]), thread())
    by = {row.event: row.by for row in watched.rows(Emit)}
    agents = {row.activation: row.agent for row in watched.rows(Start)}
    starts = [row.inputs for row in watched.rows(Start) if row.agent[0] == "b"]
    assert [[agents[by[event]] for event in inputs] for inputs in starts] == [["__start__"], ["a"]]


def test_each_of_two_threads_goes_on_with_its_own_request() -> None:
    """What a person says in one thread has nothing to do with the other."""
    watched = Watched()
    team = watched(kept(graph("ab", [(START, "a"), ("a", "b")]), interrupt_before=["a"]))
    for number in (1, 2):
        team.invoke(QUESTION, thread(number))
    for number in (2, 1):
        team.invoke(Command(goto=["b"]), thread(number))
    monitored = watched.session.monitor.graph
    finals = [row.event for row in watched.rows(Emit) if row.final]
    sources = [monitored.source_ids(monitored.event(event).sources) for event in finals]
    assert [list(each) for each in sources] == [["e3"], ["e1"]]
    assert watched.patterns == [] and watched.leaves_nothing_open()
