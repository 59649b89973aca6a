"""LangGraph, wrapped: what is found in a team, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")


from langgraph import types
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command, RetryPolicy, Send

import dig
from dig.detectors import standard, standard_healers
from dig.detectors.finding import Finding
from dig.detectors.interventions import Reroute
from dig.detectors.policy import HEAL_ALL
from dig.detectors.protocols import Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import Limits
from dig.runtime.host import Setup

from .conformance import REQUESTS, AskingTheSame, GoingRound, NotesStayApart, Shown
from .harness import Scenario, Script, play
from .langgraph_asked import QUESTION, ask, thread
from .langgraph_teams import Step, graph, node
from .langgraph_watch import Watched, team


def told(state: Any) -> list[str]:
    """The notes among the messages of a state."""
    return [one.content for one in state.get("messages", []) if one.name == "monitor"]


def half(script: Script) -> Any:
    """`j` waits for `b` and `c`, and `c` is never run."""
    j = node(script, "j", lambda state, number: {"done": ["j", *told(state)]})
    built = graph(script, "abc", [(START, "a"), (["b", "c"], "j")], j=j)
    built.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    return built.compile(checkpointer=InMemorySaver())


async def ask_thread(graph: Any) -> Any:
    return (await graph.ainvoke(QUESTION, thread()))["done"]


def test_et_an_answer_without_a_join_that_never_ran_goes_back_and_the_join_runs() -> None:
    watched = Watched("heal")
    outcome = play(team(half, ask_thread), watched)
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
    outcome = play(team(named, ask_thread), watched)
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
    outcome = play(team(ghost, ask_thread), watched)
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


class TestAskingTheSame(AskingTheSame):
    watched, asking = Watched, [team(twice), team(shared_out)]
    told = "Part of this may be there twice"


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
    assert watched.leaves_nothing_open()
    watched.must_be_sound()


class TestGoingRound(GoingRound):
    watched, going_round = Watched, [team(ping_pong, ask_ping_pong)]
    unsolved, solved = "GraphRecursionError", "'solved'"


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


class TestNotesStayApart(NotesStayApart):
    watched, crowded = Watched, staticmethod(crowded)
