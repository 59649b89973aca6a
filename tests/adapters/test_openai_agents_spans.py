"""Spans that instrumentations make of a run, beside the monitor in the same run: equal findings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

import agents
from agents import Agent, Runner, set_trace_processors, set_tracing_disabled
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import dig
from dig.graph.records import Record
from tests.helpers import VirtualLoop

from .harness import Script
from .openai_agents_teams import agent, as_tool, calls, done, hands, says, tool
from .span_watch import exporting, imported, watched_in_file, watched_live

INSTRUMENTORS = {
    "openinference": "openinference.instrumentation.openai_agents",
    "genai": "opentelemetry.instrumentation.genai.openai_agents",
}


@pytest.fixture(params=sorted(INSTRUMENTORS))
def spans(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The exported spans of runs, which one of the instrumentations makes."""
    pytest.importorskip(INSTRUMENTORS[request.param])
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "span_only")
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    exporter, provider = exporting()
    set_trace_processors([])
    set_tracing_disabled(False)
    instrumentor = import_module(INSTRUMENTORS[request.param]).OpenAIAgentsInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()
    set_trace_processors([])
    set_tracing_disabled(True)


def healthy(script: Script) -> Agent[Any]:
    (helper,) = done(script, "helper")
    replies = (calls("helper", input="what?"), says("all done"))
    return agent(script, "lead", *replies, tools=[as_tool(helper)])


def looping(script: Script) -> Agent[Any]:
    (helper,) = done(script, "helper")
    replies = [calls("helper", input="again?")] * 12
    return agent(script, "lead", *replies, says("all done"), tools=[as_tool(helper)])


def parallel(script: Script) -> Agent[Any]:
    helpers = done(script, "ann", "bob")
    replies = (calls("ann", "bob", "ann", input="what?"), says("all done"))
    return agent(script, "lead", *replies, tools=[as_tool(helper) for helper in helpers])


def handed(script: Script) -> Agent[Any]:
    (clerk,) = done(script, "clerk")
    return agent(script, "desk", hands("clerk"), handoffs=[clerk])


def failing(script: Script) -> Agent[Any]:
    """The helper raises, and the lead answers without it."""

    def raises(call: Any, number: int) -> Any:
        raise RuntimeError("the model is down")

    helper = agent(script, "helper", raises)
    replies = (calls("helper", input="what?"), says("about 12"))
    return agent(script, "lead", *replies, tools=[as_tool(helper)])


def endless(script: Script) -> Agent[Any]:
    """The lead calls until the SDK stops it."""
    (helper,) = done(script, "helper")
    return agent(script, "lead", calls("helper", input="once more"), tools=[as_tool(helper)])


def early(script: Script) -> Agent[Any]:
    """The lead answers while an agent that it has started goes on."""
    end = Answered()

    @tool()
    async def outlast(input: str) -> str:
        end.started.set()
        await end.answered.wait()
        return "late"

    @tool()
    async def start(input: str) -> str:
        end.task = asyncio.ensure_future(Runner.run(slow, input))
        await end.started.wait()
        return "started"

    slow = agent(script, "slow", calls("outlast", input="x"), says("slow done"), tools=[outlast])
    replies = (calls("start", input="dig"), says("all done"))
    # A handoff that nobody makes brings `slow` into the team.
    return agent(script, "lead", *replies, tools=[start], handoffs=[slow], hooks=end)


class Answered(agents.AgentHooks[Any]):  # type: ignore[misc]
    """An agent's hooks, with a task that goes on after the answer."""

    def __init__(self) -> None:
        self.started, self.answered = asyncio.Event(), asyncio.Event()
        self.task: Any = None


async def play(team: Agent[Any]) -> None:
    with suppress(agents.MaxTurnsExceeded):
        await Runner.run(team, "What now?", max_turns=20)
    if isinstance(team.hooks, Answered):
        team.hooks.answered.set()
        await team.hooks.task


@pytest.mark.parametrize(
    ("build", "patterns"),
    [(healthy, ""), (parallel, ""), (handed, ""), (looping, "LOOP LIVELOCK"), (failing, "FAIL"),
     (endless, "FAIL LOOP LIVELOCK"), (early, "ET")],
)  # fmt: skip
def test_spans_have_the_findings_of_the_monitor(
    build: Callable[[Script], Agent[Any]], patterns: str, spans: InMemorySpanExporter,
    tmp_path: Path,
) -> None:  # fmt: skip
    records: list[Record] = []
    team = build(Script())
    dig.wrap(team, sink=records.append)
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(play(team))
    finally:
        dig.unwrap(team)
    live = watched_live(records)
    assert watched_in_file(imported(spans, tmp_path)) == live
    assert {pattern for pattern, *_ in live} == set(patterns.split())
