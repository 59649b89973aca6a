"""LangGraph, wrapped: `why` and the headline name branches, and no node of the framework."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

import dig
from dig.detectors.five_answers import five_answers
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.watch import Watch
from dig.diagnosis.diagnosing import diagnose
from dig.traces.journal.reader import read_records

from .langgraph_teams import QUESTION, State


def branches(flights: Any, *, is_skipped: bool = False) -> Any:
    """`writer` waits for `hotels` and `flights`; the latter may have no turn."""
    built: StateGraph[Any] = StateGraph(State)
    built.add_node("plan", lambda state: {"done": ["plan"]})
    built.add_node("hotels", lambda state: {"done": ["hotel"]})
    built.add_node("flights", flights)
    built.add_node("writer", lambda state: {"done": ["report"]})
    built.add_edge(START, "plan")
    names = ["hotels"] if is_skipped else ["hotels", "flights"]
    built.add_conditional_edges("plan", lambda state: names, ["hotels", "flights"])
    built.add_edge(["hotels", "flights"], "writer")
    built.add_edge("writer", END)
    return built.compile()


def run(team: Any, folder: Path, limit_s: float | None = None) -> Path:
    """The run directory of one request, which its caller may cancel."""
    team = dig.wrap(team, journal=folder)

    async def ask() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(team.ainvoke(QUESTION), limit_s)

    asyncio.run(ask())
    directory = dig.session_of(team).directory
    dig.unwrap(team)
    assert directory is not None
    return directory


def headline(directory: Path) -> str:
    watch = Watch(())
    so_far = RunSoFar(watch.graph)
    for record in read_records(directory):
        watch.feed(record)
        so_far(record)
    return five_answers(so_far).headline


async def hangs(state: Any) -> Any:
    await asyncio.sleep(60)


def test_a_join_that_never_ran_is_told_with_the_branch_that_it_waited_for(tmp_path: Path) -> None:
    directory = run(branches(lambda state: {"done": ["LH1"]}, is_skipped=True), tmp_path)
    assert "`writer` never ran, since it waited for flights." in headline(directory)
    diagnosis = diagnose(directory)
    assert diagnosis.answer is not None and diagnosis.answer.agent == "flights"
    assert not any(row.agent.startswith("__") for row in diagnosis.candidates)


@pytest.mark.parametrize("by_caller", [True, False], ids=["caller", "framework"])
def test_a_branch_that_was_working_when_the_time_was_over_is_named(
    by_caller: bool, tmp_path: Path
) -> None:
    """By the caller's own timeout, or that of a step."""
    team = branches(hangs)
    team.step_timeout = None if by_caller else 0.2
    directory = run(team, tmp_path, 0.2 if by_caller else None)
    deed = "was called off after" if by_caller else "was still working."
    assert f"`flights` {deed}" in headline(directory)
    diagnosis = diagnose(directory)
    assert diagnosis.answer is not None and diagnosis.answer.agent == "flights"
    assert not any("longer than usual" in row.says
                   for each in diagnosis.candidates for row in each.evidence)  # fmt: skip
