"""Spans that Pydantic AI makes of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings

from dig.graph.records import Emit

from .harness import Script, play
from .pydantic_ai_teams import Watched, agent, as_tool, ask, calls, raises, says, scenario, team
from .span_watch import exporting, imported, watched_in_file, watched_live


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """The spans of all runs of a test."""
    exporter, provider = exporting()
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, version=5))
    yield exporter
    Agent.instrument_all(False)


def asking(script: Script, times: int, *replies: Any, **more: Any) -> Any:
    """A lead asks a helper some times, and answers."""
    helper = agent(script, "helper", *replies)
    questions = [calls("helper", text="how heavy?")] * times
    tools = [as_tool(helper, **more)]
    return team(agent(script, "lead", *questions, says("9 kg in all"), tools=tools), helper)


def healthy(script: Script) -> Any:
    return asking(script, 1, says("9 kg"))


def looping(script: Script) -> Any:
    return asking(script, 12, says("9 kg"))


def failing(script: Script) -> Any:
    """The helper raises, and so does the lead."""
    return asking(script, 1, raises)


def without_helper(script: Script) -> Any:
    """The helper raises, and the lead answers without it."""
    return asking(script, 1, raises, catches=True)


def early(script: Script) -> Any:
    """The lead answers while a helper that it has started goes on."""
    tasks = set()

    async def weigh() -> str:
        await asyncio.sleep(5)
        return "weighed"

    async def start(text: str) -> str:
        tasks.add(asyncio.ensure_future(helper.run(text)))
        await asyncio.sleep(1)
        return "started"

    helper = agent(script, "helper", calls("weigh"), says("late"), tools=[weigh])
    replies = calls("start", text="how heavy?"), says("9 kg")
    return team(agent(script, "lead", *replies, tools=[start]), helper)


async def outlast(team: Any) -> Any:
    """Ask, and let what goes on in the background end."""
    try:
        return await ask(team, "Weigh it")
    finally:
        await asyncio.sleep(30)


@pytest.mark.parametrize(
    ("build", "patterns"),
    [(healthy, ""), (looping, "LOOP LIVELOCK"), (failing, "FAIL"), (without_helper, "FAIL"),
     (early, "ET")],
)  # fmt: skip
def test_spans_have_the_findings_of_the_monitor(
    build: Callable[[Script], Any], patterns: str, exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    watched = Watched()
    play(scenario(build, outlast), watched)
    live = watched_live(watched.records)
    run = imported(exporter, tmp_path)
    assert watched_in_file(run) == live
    assert {pattern for pattern, *_ in live} == {*patterns.split()}
    words = [r.payload for r in run.records if isinstance(r, Emit) and r.payload is not None]
    assert words[:2] == ["Weigh it", "how heavy?"]
