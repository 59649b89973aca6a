"""LangGraph: what `test_conformance` has to know of it, and cases for all of its adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from inspect import isfunction
from typing import Any

from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from dig.adapters import langgraph as adapter
from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.detectors.thresholds import Thresholds
from dig.runtime.setup import Setup

from . import langgraph_teams as teams
from .conformance import Framework, Refused
from .framework_cases import Case, Cases
from .framework_faults import PARTS
from .framework_gates import NEVER, answers, behind, to, usher
from .framework_signatures import Pair
from .framework_watch import ladder, limited
from .harness import Script
from .langgraph_teams import SCENARIOS, Watched, inside, team
from .test_langgraph import HANGING, ask_ping_pong, crowded, ping_pong, shared_out, twice
from .test_langgraph_errors import FAILING
from .test_langgraph_inside import Inside
from .test_langgraph_interface import elsewhere, plain

PLAIN = [
    "fan-ask", "send-ask", "two_teams-ask", "failing-ask", "retried-ask", "half_join-ask",
    "asking-answer_back", "cached-ask_twice", "remembering-stop_before", "endless-ask_with_limit",
    "fan-look_at_first", "remembering-branch_off",
]  # fmt: skip


OBSERVED = ["fan-ask_at_once", "failing-streamed", "asking-answer_back"]


def circling(script: Script) -> Any:
    """The join that never ran starts two nodes that go round, beyond the recursion limit."""
    edges: list[tuple[Any, str]] = [(START, "a"), (["b", "c"], "j"), ("j", "k"), ("k", "j")]
    built = teams.graph(script, "abcjk", edges)
    built.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    return built.compile(checkpointer=InMemorySaver())


async def ask_with_few_steps(team: Any) -> Any:
    return await team.ainvoke(teams.QUESTION, teams.thread(recursion_limit=8))


def beside(script: Script) -> Any:
    """What goes to `b` can be sent to `c` instead, which is at work then."""

    async def c(state: Any) -> Any:
        async with script.turn("c", state):
            await asyncio.sleep(5)
            return {"done": ["c"]}

    return teams.graph(script, "ab", [(START, "a"), (START, "c"), ("a", "b")], c=c).compile()


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

    return teams.graph(script, "b", [(START, "a"), ("a", "b")], a=a).compile()


def repeating(script: Script) -> Any:
    """The last node calls a tool for the same until it would have to be told."""

    async def a(state: Any) -> Any:
        async with script.turn("a", state):
            return {"done": [await forecast.ainvoke({"city": "Rome"}) for _ in range(6)]}

    return teams.graph(script, [], [(START, "a")], a=a).compile()


def looping() -> Setup:
    return Setup(
        detectors=standard, healers=standard_healers, limits=Thresholds().limits, policy=HEAL_ALL
    )


def forgetful(script: Script) -> Any:
    """A person is asked whose answer nobody can give."""
    built = teams.asking(script)
    built.checkpointer = None
    return built


async def answer_and_send_on(team: Any) -> Any:
    await team.ainvoke(teams.QUESTION, teams.thread())
    return await team.ainvoke(Command(resume="Ada", goto="c"), teams.thread())


async def ask_in_time(team: Any) -> Any:
    async with asyncio.timeout(20):
        return await teams.ask(team)


def on_thread(script: Script) -> Any:
    """Nodes that are no coroutines."""

    def told(name: str) -> Any:
        def act(state: Any) -> Any:
            script.log.append((name, "sees", str(state["done"])))
            return {"done": [name]}

        return act

    built: StateGraph[Any] = StateGraph(teams.State)
    for before, name in ((START, "a"), ("a", "b"), ("b", "c")):
        built.add_node(name, told(name))
        built.add_edge(before, name)
    return built.compile()


async def ask_on_thread(team: Any) -> Any:
    return team.invoke(teams.QUESTION)


CASES = [
    *(Case(team(teams.line), limited(turns)) for turns in (1, 2)),
    Case(team(ping_pong, ask_ping_pong), limited(3)),
    *(Case(one) for one in SCENARIOS if one.name in PLAIN),
    *(Case(one, mode="observe") for one in SCENARIOS if one.name in OBSERVED),
    Case(team(teams.remembered, teams.ask_thread)),
    Case(team(circling, ask_with_few_steps)),
    Case(team(teams.chain, teams.ask_twice)),
    Case(team(teams.fan, teams.ask_at_once)),
    Case(team(ping_pong, ask_ping_pong)),
    Case(team(twice), options={"same_work": True}),
    *([Case(team(teams.handled))] if teams.HAS_HANDLERS else []),
    Case(team(with_tools), options={"tools": True}),
    Case(team(repeating), looping, {"tools": True}),
    Case(team(forgetful)),
    Case(team(teams.asking, answer_and_send_on)),
    Case(team(teams.line), lambda: elsewhere("b", "c")),
    Case(team(teams.line), lambda: elsewhere("b", "d")),
    Case(team(teams.line), behind(usher())),
    Case(team(teams.line), behind(usher("Welcome."))),
    Case(team(teams.half_join), behind(usher("Welcome.")), {"annotate": lambda state, notes: None}),
    Case(team(on_thread, ask_on_thread), behind(usher())),
    Case(team(beside), lambda: elsewhere("b", "c")),
    Case(team(teams.line, ask_in_time), behind(usher(keeps=answers, after_s=NEVER))),
    Case(team(teams.line), lost=("turn.emit", 3)),
    Case(team(teams.line), behind(usher()), lost=("session.wait_until_released", 1)),
    Case(HANGING.asked, ladder, {"allow": {"reassign"}}),
    *(Case(teams.nested(one)) for one in teams.INNER),
    *(
        Case(inside(one), options={"inside": True})
        for one in teams.INNER
        if one is not teams.HEALED_TWICE
    ),
    Case(inside(team(teams.line)), behind(usher("Welcome.")), {"inside": True}),
]


async def in_docs(lines: Sequence[Any]) -> int:
    names: dict[str, Any] = {"graph": plain().compile()}
    exec(lines[0], names)
    assert names["answer"]["done"] == ["a", "b"]
    return 1


def replaced() -> list[Pair]:
    """The methods that the class of a monitored copy has of its own."""
    graph = teams.chain(Script())
    twin = type(Watched()(graph))
    own = (name for name, what in vars(twin).items() if isfunction(what))
    return [Pair(getattr(type(graph), name), getattr(twin, name)) for name in own]


WITHIN = (
    *(
        one
        for one in SCENARIOS
        if one.name.startswith(("subgraph-ask", "two_", "nested_", "subgraph-s"))
    ),
    *(
        inside(one)
        for one in (
            *teams.INNER,
            team(teams.retried, teams.ask_thread),
            team(teams.chain, teams.ask_thread),
        )
    ),
)
FRAMEWORKS = [
    Framework(
        "langgraph", Watched, package="langgraph", scenarios=SCENARIOS,
        cancelled=(
            "chain-ask", "fan-ask", "send-ask", "two_teams-ask", "asking-answer_back",
            "fan-updates",
        ),
        going_round=[team(ping_pong, ask_ping_pong)],
        unsolved="GraphRecursionError", solved="'solved'",
        asking=[team(twice), team(shared_out)], told="Part of this may be there twice",
        crowded=crowded,
        faults=Cases(adapter, Watched, CASES, turn_instead="turn", caller="turn"), at_least=50,
        fragile=PLAIN, parts=(*PARTS, "annotate", "handoff"),
        unhealed=[(team(teams.line, teams.ask_twice), behind(usher("Welcome."))())],
        unheld=[team(teams.line, teams.ask_twice)],
        tapped=SCENARIOS[:1], replaced=replaced,
        refused=[Refused(plain, "compile it first")],
        at_once=team(teams.fan, teams.ask_at_once), seats=("a", "a#2", "a#3"),
        beside=(team(teams.fan), "b", "c", {}),
        kept=(team(teams.chain), to("__end__")), held=(team(teams.chain), to("b")),
        failing=FAILING, hanging=HANGING,
        example=(
            ("ER", "ET"),
            (
                "GraphRecursionError.*", "Nobody else will: refunds pays it back.",
                "A text about rain, please.",
                r"A text after a check of the facts \(one review is missing\).",
            ),
        ),
        docs=in_docs,
    ),
    Framework(
        "langgraph_inside", Inside, scenarios=WITHIN, cancelled=[str(WITHIN[0])],
        may_be_healed=True,
    ),
]  # fmt: skip
