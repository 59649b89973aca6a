"""Spans that Pydantic AI makes of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from dig.detectors import standard
from dig.detectors.watch import Watch
from dig.graph.records import Emit
from dig.traces.interchange.imports import Imported, import_file
from tests.helpers import VirtualLoop


class Team:
    """A lead that asks a helper some times, and answers.

    Attributes:
        answered: Set after the answer of the lead.
    """

    def __init__(self, times: int, helper: Callable[[], Any], *, waits: bool = True) -> None:
        self.exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        settings = InstrumentationSettings(tracer_provider=provider, version=5)
        options: Any = {"capabilities": [Instrumentation(settings=settings)]}
        self.answered, self._tasks, self._left = asyncio.Event(), list[Any](), times
        self._helper: Any = Agent(FunctionModel(self._help), name="helper", **options)
        self._lead: Any = Agent(FunctionModel(self._decide), name="lead", **options)
        self._lead.tool_plain(self.ask)
        self._reply, self._waits = helper, waits

    async def _decide(self, messages: Any, info: Any) -> Any:
        self._left -= 1
        if self._left >= 0:
            return ModelResponse(parts=[ToolCallPart("ask", {"question": "how heavy?"})])
        return ModelResponse(parts=[TextPart("9 kg in all")])

    async def _help(self, messages: Any, info: Any) -> Any:
        if not self._waits:
            await self.answered.wait()
        return ModelResponse(parts=[TextPart(self._reply())])

    async def ask(self, question: str) -> str:
        """Ask the helper."""
        task = asyncio.ensure_future(self._helper.run(question))
        if self._waits:
            return str((await task).output)
        self._tasks.append(task)
        await asyncio.sleep(1)
        return "started"

    async def run(self) -> None:
        with suppress(ValueError):
            await self._lead.run("Weigh it")
        self.answered.set()
        await asyncio.gather(*self._tasks)


def broken() -> Any:
    raise ValueError("no scales")


def imported(team: Team, folder: Path) -> Imported:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(team.run())
    path = folder / "spans.json"
    path.write_text(MessageToJson(encode_spans(team.exporter.get_finished_spans())))
    return import_file(path)


@pytest.mark.parametrize(
    ("team", "patterns"),
    [
        (lambda: Team(1, lambda: "9 kg"), []),
        (lambda: Team(12, lambda: "9 kg"), ["LOOP"] * 4 + ["LIVELOCK"]),
        (lambda: Team(1, lambda: "late", waits=False), ["ET"]),
        (lambda: Team(1, broken), ["FAIL", "FAIL"]),
    ],
    ids=["healthy", "loop", "early", "fails"],
)
def test_its_spans_are_judged(
    team: Callable[[], Team], patterns: list[str], tmp_path: Path
) -> None:
    watch, run = Watch(standard()), imported(team(), tmp_path)
    found = [str(finding.pattern) for r in run.records for finding in watch.feed(r)]
    assert found == patterns
    words = [r.payload for r in run.records if isinstance(r, Emit) and r.payload is not None]
    assert words[:2] == ["Weigh it", "how heavy?"]
