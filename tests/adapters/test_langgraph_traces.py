"""LangGraph, wrapped: what a session leaves, and what the docs and the example show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langgraph.graph import START, StateGraph
from typer.testing import CliRunner

import dig
from dig.cli import app
from dig.traces.verify import verify

from .conformance import example, lines_of
from .harness import Scenario, Script, play
from .langgraph_asked import SCENARIOS, ask
from .langgraph_teams import State, chain, fan, subgraph
from .langgraph_watch import Watched, seats


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_what_was_found_live_is_found_again_in_the_trace_and_nothing_is_lost(
    scenario: Scenario,
) -> None:
    for mode in ("observe", "heal"):
        watched = Watched(mode)
        play(scenario, watched, seed=1)
        watched.must_be_sound()


def test_overlapping_requests_are_problems_of_their_own_and_turns_are_instances() -> None:
    async def at_once(wrapped: Any) -> Any:
        return await asyncio.gather(*(wrapped.ainvoke({"done": [str(i)]}) for i in range(3)))

    watched = Watched()
    play(Scenario("fan", fan, at_once), watched)
    assert watched.session.statistics().requests == 3
    assert {"a", "a#2", "a#3"} <= seats(watched.session.monitor.graph)
    assert watched.patterns == []
    assert watched.leaves_nothing_open()
    watched.must_be_sound()


@pytest.mark.parametrize("build", [chain, fan, subgraph], ids=lambda build: build.__name__)
def test_a_journal_passes_the_independent_checker_and_a_check_finds_the_same(
    build: Any, tmp_path: Path
) -> None:
    wrapped = dig.wrap(build(Script()), journal=tmp_path)
    asyncio.run(ask(wrapped))
    directory = dig.session_of(wrapped).directory
    dig.unwrap(wrapped)
    assert directory is not None
    trace = directory / "trace.dig.jsonl"
    assert not verify(trace).problems
    assert CliRunner().invoke(app, ["check", str(trace), "--fail-on", "notice"]).exit_code == 0


def test_the_example_shows_both_failures_and_both_cures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    round_and_round, paid, early, whole = example("langgraph", tmp_path)
    assert round_and_round.startswith("GraphRecursionError")
    assert paid == "Nobody else will: refunds pays it back."
    assert early == "A text about rain, please."
    assert whole == "A text after a check of the facts (one review is missing)."
    assert capsys.readouterr().out.count("trace and result: ") == 4


def straight() -> Any:
    """A graph of two nodes that need no loop."""
    built: StateGraph[Any] = StateGraph(State)
    for name in "ab":
        built.add_node(name, lambda state, name=name: {"done": [name]})
    built.add_edge(START, "a")
    built.add_edge("a", "b")
    return built.compile()


def test_the_lines_in_the_docs_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, *_ = lines_of("wrapping-langgraph.md")
    names: dict[str, Any] = {"graph": straight()}
    monkeypatch.chdir(tmp_path)
    exec(lines, names)
    assert names["answer"]["done"] == ["a", "b"]
    assert len([*tmp_path.glob("runs/*/result.json")]) == 1
