"""Spans of agents that call each other over A2A: the SDK's join them, the agents' own tell."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dig.errors import TraceError
from dig.traces.otel import conventions

from .a2a_teams import Act, Watched, ask_first, asks, raises, says, scenario, words
from .harness import play
from .span_watch import exporting, imported, watched_in_file, watched_live


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """The spans of all runs of a test; the SDK asks for the global provider at each call."""
    exporter, provider = exporting()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def spoken(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def traced(act: Act) -> Act:
    """An agent that makes a span of its turn, as the GenAI conventions have it."""

    async def turn(agent: Any, context: Any, updater: Any) -> Any:
        about = {conventions.OPERATION: "invoke_agent", conventions.AGENT_NAME: agent.name,
                 conventions.INPUT_MESSAGES: spoken("user", context.get_user_input())}  # fmt: skip
        tracer = trace.get_tracer("team")
        with tracer.start_as_current_span(f"invoke_agent {agent.name}", attributes=about) as span:
            said = act(agent, context, updater)
            said = await said if asyncio.iscoroutine(said) else said
            span.set_attribute(conventions.OUTPUT_MESSAGES, spoken("assistant", said))
        return said

    return turn


async def again_and_again(agent: Any, context: Any, updater: Any) -> str:
    said = [await words(agent.peers["helper"], "how heavy?") for _ in range(12)]
    return said[-1]


async def without_helper(agent: Any, context: Any, updater: Any) -> str:
    with suppress(Exception):
        return await words(agent.peers["helper"], "how heavy?")
    return "9 kg, I guess"


async def early(agent: Any, context: Any, updater: Any) -> str:
    """Answer while the helper goes on."""
    agent.background = asyncio.create_task(words(agent.peers["helper"], "how heavy?"))
    await asyncio.sleep(2)
    return "9 kg, I guess"


async def slow(agent: Any, context: Any, updater: Any) -> str:
    await asyncio.sleep(5)
    return "9 kg"


async def outlast(team: Any) -> Any:
    """Ask, and let what goes on in the background end."""
    try:
        return await ask_first(team)
    finally:
        await asyncio.sleep(30)


TEAMS: dict[str, tuple[str, Act, Act]] = {
    "healthy": ("", asks("helper"), says("9 kg")),
    "looping": ("LOOP LIVELOCK", again_and_again, says("9 kg")),
    "failing": ("FAIL", asks("helper"), raises),
    "without": ("FAIL", without_helper, raises),
    "early": ("ET", early, slow),
}


@pytest.mark.parametrize("name", TEAMS)
def test_spans_have_the_findings_of_the_monitor(
    name: str, exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    patterns, lead, helper = TEAMS[name]
    watched = Watched()
    play(scenario(name, outlast, lead=traced(lead), helper=traced(helper)), watched)
    live = watched_live(watched.records)
    assert watched_in_file(imported(exporter, tmp_path)) == live
    assert {pattern for pattern, *_ in live} == {*patterns.split()}


def test_spans_of_the_sdk_alone_name_no_agent(
    exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    play(scenario("healthy", outlast, lead=asks("helper"), helper=says("9 kg")))
    assert exporter.get_finished_spans()
    with pytest.raises(TraceError, match=r"none that names an agent \(gen_ai.agent.name"):
        imported(exporter, tmp_path)
