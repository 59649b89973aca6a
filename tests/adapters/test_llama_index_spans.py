"""Spans that OpenInference makes of runs of LlamaIndex, whose steps tell who has the floor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openinference.instrumentation.llama_index")

from llama_index.core.tools import FunctionTool
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dig.graph.records import Emit

from .harness import Script, play
from .llama_index_teams import (
    MARKS,
    Watched,
    agent,
    as_tool,
    ask,
    calls,
    hands,
    raises,
    says,
    scenario,
    workflow,
)
from .span_watch import imported, instrumented, watched_in_file, watched_live

pytestmark = MARKS


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """The spans of all runs of a test."""
    yield from instrumented(LlamaIndexInstrumentor())


def asking(script: Script, times: int, *replies: Any) -> Any:
    """A desk hands over to a lead, who asks a helper some times, and answers."""
    helper = agent(script, "helper", *replies)
    lead = agent(
        script, "lead", *[calls("helper", text="how heavy?")] * times, says("it's 9 kg \"in all\""),
        tools=[as_tool(helper)],
    )  # fmt: skip
    return [workflow(agent(script, "desk", hands("lead", "to weigh")), lead), helper]


def healthy(script: Script) -> Any:
    return asking(script, 1, says("9 kg"))


def looping(script: Script) -> Any:
    return asking(script, 12, says("9 kg"))


def without_helper(script: Script) -> Any:
    """The helper raises, and the lead answers without it."""
    return asking(script, 1, raises)


def failing(script: Script) -> Any:
    """The agent that was handed the floor raises."""
    return workflow(agent(script, "desk", hands("lead")), agent(script, "lead", raises))


def going_round(script: Script) -> Any:
    """Two agents hand over until LlamaIndex stops them."""
    agents = agent(script, "a", hands("b", "yours")), agent(script, "b", hands("a", "no, yours"))
    return workflow(*agents)


def early(script: Script) -> Any:
    """The lead answers while a helper that it has started goes on."""

    async def weigh() -> str:
        await asyncio.sleep(5)
        return "weighed"

    async def start(text: str) -> str:
        tasks.append(asyncio.ensure_future(ask(helper, text)))
        await asyncio.sleep(1)
        return "started"

    tasks = list[Any]()
    weighing = FunctionTool.from_defaults(async_fn=weigh)
    helper = agent(script, "helper", calls("weigh"), says("late"), tools=[weighing])
    tool = FunctionTool.from_defaults(async_fn=start)
    lead = agent(script, "lead", calls("start", text="how heavy?"), says("9 kg"), tools=[tool])
    return [lead, helper]


async def outlast(team: Any) -> Any:
    """Ask, and let what goes on in the background end."""
    try:
        return await ask(team, "Weigh it")
    finally:
        await asyncio.sleep(30)


@pytest.mark.parametrize(
    ("build", "patterns"),
    [(healthy, ""), (looping, "LOOP LIVELOCK"), (without_helper, "FAIL"), (failing, "FAIL"),
     (going_round, "FAIL LOOP"), (early, "ET")],
)  # fmt: skip
def test_spans_have_the_findings_of_the_monitor(
    build: Callable[[Script], Any], patterns: str, exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    watched = Watched()
    play(scenario(build, outlast), watched)
    live = watched_live(watched.records)
    assert watched_in_file(imported(exporter, tmp_path)) == live
    assert {pattern for pattern, *_ in live} == {*patterns.split()}


def test_words_and_names_are_those_of_the_agents(
    exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    play(scenario(healthy, outlast))
    emits = [r for r in imported(exporter, tmp_path).records if isinstance(r, Emit)]
    assert [(r.to, r.payload) for r in emits if r.type != "notice"] == [
        (("desk",), "Weigh it"),
        (("lead",), {"to_agent": "lead", "reason": "to weigh"}),
        (("helper",), "how heavy?"),
        (("lead",), "9 kg"),
        ((), 'it\'s 9 kg "in all"'),
    ]
