"""LangGraph, wrapped: a node hangs, and another one's function is run in its place."""

from __future__ import annotations

import asyncio
import runpy
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import anyio
import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langgraph.graph import END, START

from dig.detectors import standard, standard_healers
from dig.detectors.thresholds import Thresholds
from dig.graph.records import IncidentRow
from dig.runtime.host import Setup
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import rerun

from .conformance import ROOT
from .framework_watch import ticking
from .harness import Outcome, Scenario, Script, play
from .langgraph_asked import QUESTION
from .langgraph_teams import graph
from .langgraph_watch import Watched


def ladder() -> Setup:
    """Healing step by step, by the thresholds of the commands."""
    limits = Thresholds().limits
    return Setup(detectors=standard, healers=standard_healers, limits=limits, ladder=True)


def healing(**options: Any) -> Watched:
    return Watched("heal", ladder(), **options)


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


async def ask(graph: Any) -> Any:
    """Five requests."""
    for _ in range(4):
        await graph.ainvoke(QUESTION)
    return (await graph.ainvoke(QUESTION))["done"]


def relieved(wrap: Any, build: Any = hanging) -> Scenario:
    """Five requests while time makes itself felt."""
    return ticking(Scenario("hanging", build, ask), wrap)


def ask_five_times(watched: Watched, build: Any = hanging) -> Outcome:
    return play(relieved(watched, build))


def test_a_function_of_another_node_is_run_in_place_of_one_that_hangs() -> None:
    """STALL healed: another node has the state, its update goes on along the first one's edges."""
    watched = healing(allow={"reassign"})
    outcome = ask_five_times(watched)
    assert outcome.returned in (
        "['?', 'a', 'a', 'c']",
        "['?', 'a', 'c', 'c']",
        "['?', 'a', 'd', 'c']",
    )
    assert watched.patterns == ["STALL"] and watched.healed() == ["reassign"]
    assert watched.leaves_nothing_open()
    watched.must_be_sound()


def test_a_node_that_hangs_is_left_alone_unless_that_is_allowed() -> None:
    """With `allow` empty no node is cancelled: the graph waits for it, as without us."""
    watched = healing()
    assert "'b'" in str(ask_five_times(watched).returned)
    assert watched.patterns[0] == "STALL" and "reassign" not in watched.healed()
    assert "downgraded" in watched.incidents()


def test_what_a_node_writes_after_its_cancellation_is_dropped() -> None:
    """A node that swallows its cancellation is late: the update of the other one counts."""
    watched = healing(allow={"reassign"})
    outcome = ask_five_times(watched, partial(hanging, stubborn=True))
    assert outcome.returned in {f"['?', 'a', {other!r}, 'c']" for other in "acd"}
    assert watched.leaves_nothing_open()


class Other(TypedDict, total=False):
    """A state that only one node takes."""

    done: list[str]


def typed(script: Script) -> Any:
    """As `hanging`, but `b` takes a state of its own, which no other node takes."""
    return hanging(script, takes=Other)


def test_a_node_that_takes_another_state_is_not_asked() -> None:
    """What is given to a node is given to another only if both have one input schema."""
    watched = healing(allow={"reassign"})
    assert "'b'" in str(ask_five_times(watched, typed).returned)
    assert watched.patterns[0] == "STALL" and "reassign" not in watched.healed()


def test_the_example_answers_although_an_agent_hangs(tmp_path: Path) -> None:
    """Another courier brings the last parcel, in real time; the journal can be run once more."""
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "wrap_hanging.py"))
    assert anyio.run(example["main"], "langgraph", str(tmp_path)) == "Bob has brought parcel 12"
    [run] = tmp_path.iterdir()
    records = list(read_records(run))
    assert rerun(run).records == len(records)
    incidents = {row.what for row in records if isinstance(row, IncidentRow)}
    assert "downgraded" in incidents  # `__start__`, which healing wanted, is no node to be asked
