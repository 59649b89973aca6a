"""What a message costs with others: monitors that rescan, tracing, and agent frameworks.

The work is a ring of 20 agents. A peer does its own thing with each message; none but the
rescanning monitors finds any failure, and those look for a part of what ours does. So the table
says what a hold adds to a message that costs what it costs there, not who is better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from statistics import median
from time import process_time
from typing import Any, TypedDict

import anyio

from dig.detectors import standard, standard_healers
from dig.detectors.watch import Watch
from dig.graph.records import Fate
from dig.monitor.messages import Output, Started
from dig.monitor.monitor import Monitor

from .measure import Candidate, Table, per_unit
from .rescan import BACKENDS, check, rescanning, trace, watching

MESSAGES = 500
ROUNDS = 3
TEXT = "Count how often each value occurs in your part, and say where you are not sure."
NAMES = tuple(f"agent-{i}" for i in range(20))


def _ring(monitor: Monitor) -> Iterator[None]:
    """Pass a message round a ring for ever, one hold at a time."""
    monitor.inject(Output({"text": TEXT}, NAMES[:1]))
    for turn in count():
        effects = monitor.start(NAMES[turn % len(NAMES)])
        current = next(effect for effect in effects if isinstance(effect, Started))
        fates = (Fate(current.events[0].id, "consume"),)
        output = Output({"text": TEXT, "turn": turn}, (NAMES[(turn + 1) % len(NAMES)],))
        monitor.end(current.activation, fates, (output,))
        yield


def _ours(detect: bool) -> Candidate:
    clock = count()
    monitor = Monitor(
        NAMES,
        clock=lambda: next(clock) / 1000,
        detectors=standard() if detect else (),
        healers=standard_healers() if detect else {},
    )
    ring = _ring(monitor)

    def once() -> int:
        for _ in range(MESSAGES):
            next(ring)
        return MESSAGES

    return once


def _spans() -> Candidate:
    """An OpenTelemetry span a message, with what a tracing monitor would write into it."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = provider.get_tracer("bench")

    def once() -> int:
        for i in range(MESSAGES):
            with tracer.start_as_current_span("message") as span:
                span.set_attributes({"from": NAMES[i % 20], "to": NAMES[(i + 1) % 20], "id": i})
        provider.force_flush()
        return MESSAGES

    return once


def _autogen() -> Candidate:
    """`send_message` of AutoGen's single-threaded runtime: a request and its response."""
    from dataclasses import dataclass

    from autogen_core import (
        AgentId,
        MessageContext,
        RoutedAgent,
        SingleThreadedAgentRuntime,
        message_handler,
    )

    @dataclass
    class Passed:
        text: str
        turn: int

    async def handle(self: Any, message: Passed, ctx: MessageContext) -> Passed:
        return Passed(message.text, message.turn + 1)

    # Its decorator reads the annotations, which have to be classes by then.
    handle.__annotations__ = {"message": Passed, "ctx": MessageContext, "return": Passed}
    body = {"on_passed": message_handler(handle)}
    agent = type("Peer", (RoutedAgent,), body)

    async def run() -> None:
        runtime = SingleThreadedAgentRuntime()
        await agent.register(runtime, "peer", lambda: agent("A peer"))  # type: ignore[attr-defined]
        runtime.start()
        message = Passed(TEXT, 0)
        for i in range(MESSAGES):
            message = await runtime.send_message(message, AgentId("peer", NAMES[i % 20]))
        await runtime.stop()
        assert message.turn == MESSAGES

    def once() -> int:
        anyio.run(run)
        return MESSAGES

    return once


def _langgraph() -> Candidate:
    """A superstep of LangGraph: one node that passes on, without a checkpointer."""
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        text: str
        turn: int

    def act(state: State) -> State:
        return {"text": state["text"], "turn": state["turn"] + 1}

    graph = StateGraph(State)
    graph.add_node("agent", act)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges(
        "agent", lambda state: END if state["turn"] >= MESSAGES else "agent"
    )
    app = graph.compile()

    def once() -> int:
        end = app.invoke({"text": TEXT, "turn": 0}, {"recursion_limit": MESSAGES + 10})
        assert end["turn"] == MESSAGES
        return MESSAGES

    return once


FRAMEWORKS: dict[str, tuple[str, Callable[[], Candidate]]] = {
    "OpenTelemetry span (batch)": ("opentelemetry-sdk", _spans),
    "AutoGen send_message": ("autogen-core", _autogen),
    "LangGraph superstep": ("langgraph", _langgraph),
}


def peers(quick: bool = False) -> Table:
    """Microseconds a message, of ours and of others, in one run."""
    missing = []
    candidates = {
        "monitor, seven detectors, healing": _ours(True),
        "monitor without detectors": _ours(False),
    }
    for name, (package, make) in FRAMEWORKS.items():
        try:
            candidates[f"{name} ({package} {version(package)})"] = make()
        except (ImportError, PackageNotFoundError):
            missing.append((name, "not installed: pip install -e '.[bench]'", "-"))
    times = per_unit(candidates, 3 if quick else 7, process_time)
    base = next(iter(times.values()))
    rows = [(name, f"{us:.1f}", f"{us / base:.2f}") for name, us in times.items()]
    return Table("Peers: a message round a ring", ("", "us/message", "ratio"), [*rows, *missing])


def rescans(quick: bool = False) -> Table:
    """Microseconds an event of a monitor that looks at everything again, and of ours."""
    rows = []
    for size, more in ((300, 100), (1_000, 100), (3_000, 60), (6_000, 40), (20_000, 20)):
        if quick and size > 1_000:
            break
        before, after = trace(size, more, session=False)
        ours = median(watching(before, after, Watch(standard())) for _ in range(ROUNDS))
        rows.append((f"{size:,} activations: Watch.feed, seven detectors", f"{ours:.1f}", "1"))
        for backend in BACKENDS:
            name = f"{size:,} activations: rescan with {backend.__name__.lower()}"
            try:
                check(backend, trace(600, 0, session=True)[0])
                us = median(rescanning(backend, before, after) for _ in range(ROUNDS))
            except ImportError:
                rows.append((name, "not installed: pip install -e '.[bench]'", "-"))
            else:
                rows.append((name, f"{us:.0f}", f"{us / ours:,.0f}"))
    return Table("Rescans: ET, OE and CLA at delivery", ("", "us/event", "ratio"), rows)
