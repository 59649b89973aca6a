"""Cases that together come through every call that LangGraph's adapter makes of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import signature
from typing import Any

from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.detectors.thresholds import Thresholds
from dig.runtime.host import Setup

from .framework_cases import Case, Wrap
from .framework_gates import Hanging, Usher, behind
from .harness import Scenario, Script
from .langgraph_asked import QUESTION, SCENARIOS, ask, ask_at_once, ask_twice, thread
from .langgraph_teams import State, around, asking, chain, fan, graph, half_join, node
from .langgraph_watch import team
from .test_langgraph_healing import ask_ping_pong, ask_thread, ping_pong, twice
from .test_langgraph_interface import HEALED_TWICE, INNER, Elsewhere
from .test_langgraph_relief import ladder, relieved

PLAIN = [
    "fan-ask", "send-ask", "two_teams-ask", "failing-ask", "retried-ask", "half_join-ask",
    "asking-answer_back", "cached-ask_twice", "remembering-stop_before", "endless-ask_with_limit",
    "fan-look_at_first", "remembering-branch_off",
]  # fmt: skip


OBSERVED = ["fan-ask_at_once", "failing-streamed", "asking-answer_back"]


def remembered(script: Script) -> Any:
    """An answer can go back, and the join runs that never ran."""
    built = half_join(script)
    built.checkpointer = InMemorySaver()
    return built


def circling(script: Script) -> Any:
    """The join that never ran starts two nodes that go round, beyond the recursion limit."""
    edges: list[tuple[Any, str]] = [(START, "a"), (["b", "c"], "j"), ("j", "k"), ("k", "j")]
    built = graph(script, "abcjk", edges)
    built.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    return built.compile(checkpointer=InMemorySaver())


async def ask_with_few_steps(team: Any) -> Any:
    return await team.ainvoke(QUESTION, thread(recursion_limit=8))


def elsewhere(to: str) -> Setup:
    one = Elsewhere("b", to)
    return Setup(detectors=lambda: [one], healers=lambda: {"ELSEWHERE": one}, policy=HEAL_ALL)


def line(script: Script) -> Any:
    return graph(script, "abcd", [(START, "a"), ("a", "b"), ("b", "c")]).compile()


def beside(script: Script) -> Any:
    """What goes to `b` can be sent to `c` instead, which is at work then."""

    async def c(state: Any) -> Any:
        async with script.turn("c", state):
            await asyncio.sleep(5)
            return {"done": ["c"]}

    return graph(script, "ab", [(START, "a"), (START, "c"), ("a", "b")], c=c).compile()


@tool  # type: ignore[untyped-decorator]
async def forecast(city: str) -> str:
    """The weather of tomorrow."""
    await asyncio.sleep(1)
    if city == "Atlantis":
        raise ValueError(city)
    return f"sunny in {city}"


def with_tools(script: Script) -> Any:
    """A node calls a tool twice, which fails the second time."""

    async def a(state: Any) -> Any:
        async with script.turn("a", state):
            said = [await forecast.ainvoke({"city": "Rome"})]
            try:
                await forecast.ainvoke({"city": "Atlantis"})
            except ValueError as error:
                said.append(repr(error))
            return {"done": said}

    return graph(script, "b", [(START, "a"), ("a", "b")], a=a).compile()


def repeating(script: Script) -> Any:
    """The last node calls a tool for the same until it would have to be told."""

    async def a(state: Any) -> Any:
        async with script.turn("a", state):
            return {"done": [await forecast.ainvoke({"city": "Rome"}) for _ in range(6)]}

    return graph(script, [], [(START, "a")], a=a).compile()


def looping() -> Setup:
    return Setup(
        detectors=standard, healers=standard_healers, limits=Thresholds().limits, policy=HEAL_ALL
    )


def forgetful(script: Script) -> Any:
    """A person is asked whose answer nobody can give."""
    built = asking(script)
    built.checkpointer = None
    return built


async def answer_and_send_on(team: Any) -> Any:
    await team.ainvoke(QUESTION, thread())
    return await team.ainvoke(Command(resume="Ada", goto="c"), thread())


async def ask_in_time(team: Any) -> Any:
    async with asyncio.timeout(20):
        return await ask(team)


def on_thread(script: Script) -> Any:
    """Nodes that are no coroutines."""

    def told(name: str) -> Any:
        def act(state: Any) -> Any:
            script.log.append((name, "sees", str(state["done"])))
            return {"done": [name]}

        return act

    built: StateGraph[Any] = StateGraph(State)
    for before, name in ((START, "a"), ("a", "b"), ("b", "c")):
        built.add_node(name, told(name))
        built.add_edge(before, name)
    return built.compile()


async def ask_on_thread(team: Any) -> Any:
    return team.invoke(QUESTION)


def handled(script: Script) -> Any:
    """A node that fails, and another one that takes care of that."""

    def fail(state: Any, number: int) -> Any:
        raise ValueError("no such city")

    built = graph(script, "ac", [(START, "a"), ("a", "b"), ("b", "c")])
    care = node(script, "care")
    built.add_node("b", node(script, "b", fail), error_handler=care)
    return built.compile()


HAS_HANDLERS = "error_handler" in signature(StateGraph.add_node).parameters
"""Whether a node can take care of the error of another one: LangGraph has that since 1.2."""


def nested(inner: Scenario) -> Callable[[Wrap], Scenario]:
    """The wrapped graph is a node of another graph."""

    def asked(wrap: Wrap) -> Scenario:
        def build(script: Script) -> Any:
            return around(script, wrap(inner.build(script)))

        return Scenario(f"nested-{inner}", build, inner.drive)

    asked.__qualname__ = f"nested-{inner}"
    return asked


def inside(inner: Scenario) -> Scenario:
    """The graph is a node of another one, which is wrapped."""

    def build(script: Script) -> Any:
        return around(script, inner.build(script))

    return Scenario(f"inside-{inner}", build, inner.drive)


CASES = [
    *(Case(one) for one in SCENARIOS if one.name in PLAIN),
    *(Case(one, mode="observe") for one in SCENARIOS if one.name in OBSERVED),
    Case(team(remembered, ask_thread)),
    Case(team(circling, ask_with_few_steps)),
    Case(team(chain, ask_twice)),
    Case(team(fan, ask_at_once)),
    Case(team(ping_pong, ask_ping_pong)),
    Case(team(twice), options={"same_work": True}),
    *([Case(team(handled))] if HAS_HANDLERS else []),
    Case(team(with_tools), options={"tools": True}),
    Case(team(repeating), looping, {"tools": True}),
    Case(team(forgetful)),
    Case(team(asking, answer_and_send_on)),
    Case(team(line), lambda: elsewhere("c")),
    Case(team(line), lambda: elsewhere("d")),
    Case(team(line), behind(Usher())),
    Case(team(line), behind(Usher("Welcome."))),
    Case(team(half_join), behind(Usher("Welcome.")), {"annotate": lambda state, notes: None}),
    Case(team(on_thread, ask_on_thread), behind(Usher())),
    Case(team(beside), lambda: elsewhere("c")),
    Case(team(line, ask_in_time), behind(Hanging())),
    Case(team(line), lost=("turn.emit", 3)),
    Case(team(line), behind(Usher()), lost=("session.wait_until_released", 1)),
    Case(relieved, ladder, {"allow": {"reassign"}}),
    *(Case(nested(one)) for one in INNER),
    *(Case(inside(one), options={"inside": True}) for one in INNER if one is not HEALED_TWICE),
    Case(inside(team(line)), behind(Usher("Welcome.")), {"inside": True}),
]
