"""Spans that OpenInference makes of runs of Google ADK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openinference.instrumentation.google_adk")

from google.adk.tools.agent_tool import AgentTool
from openinference.instrumentation.google_adk import GoogleADKInstrumentor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dig.graph.records import Start
from tests.helpers import VirtualLoop

from . import google_adk_teams as teams
from .google_adk_teams import agent, ask, asks, calls, raises, says
from .harness import AtOnce
from .span_watch import imported, instrumented, watched_in_file, watched_live

pytestmark = teams.OLD_WAYS


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """The spans of all runs of a test."""
    yield from instrumented(GoogleADKInstrumentor())


def team(times: int, helper: Any, *, waits: bool = True) -> Any:
    """A lead that asks a helper some times, or starts it, and answers."""
    script, tasks = AtOnce(), list[Any]()

    async def weigh() -> str:
        await asyncio.sleep(5)
        return "weighed"

    tool = agent(script, "helper", calls("weigh"), helper, tools=[weigh])
    if waits:
        tool = agent(script, "helper", helper)

    async def start(question: str) -> str:
        tasks.append(asyncio.create_task(ask(tool, question)))
        await asyncio.sleep(1)
        return "started"

    question = asks("helper", text="how heavy?") if waits else calls("start", question="heavy?")
    lead = agent(
        script, "lead", *[question] * times, says("9 kg in all"),
        tools=[AgentTool(tool) if waits else start],
    )  # fmt: skip
    return lead, tasks


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: team(1, says("9 kg")), set()),
        (lambda: team(12, says("9 kg")), {"LOOP", "LIVELOCK"}),
        (lambda: team(1, says("late"), waits=False), {"ET"}),
        (lambda: team(1, raises), {"FAIL"}),
    ],
    ids=["healthy", "loop", "early", "fails"],
)
def test_its_spans_have_the_findings_of_the_monitor(
    build: Callable[[], Any], expected: set[str], exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    watched = teams.Watched()
    lead, tasks = build()

    async def run() -> None:
        with suppress(ValueError):
            await ask(watched(lead), "Weigh it")
        await asyncio.gather(*tasks)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())
    watched.detach()  # before the instrumentation takes back what it has replaced
    live = watched_live(watched.records)
    assert watched_in_file(imported(exporter, tmp_path)) == live
    assert {pattern for pattern, *_ in live} == expected


def test_an_instrumentation_that_is_taken_back_leaves_the_watch(
    exporter: InMemorySpanExporter,
) -> None:
    """It puts back the methods that it has found, which were ADK's own."""
    lead, _ = team(1, says("9 kg"))
    watched = teams.Watched()
    wrapped = watched(lead)
    GoogleADKInstrumentor().uninstrument()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(ask(wrapped, "Weigh it"))
    watched.detach()
    assert [row.agent for row in watched.rows(Start)] == ["lead", "helper", "lead"]
    assert not exporter.get_finished_spans()
