"""What a message costs with others: monitors that rescan, tracing, and agent frameworks.

The work is a ring of 20 agents. A peer does its own thing with each message; none but the
rescanning monitors finds any failure, and those look for a part of what ours does. So the table
says what a hold adds to a message that costs what it costs there, not who is better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, TypedDict

import anyio

from dig.detectors import standard, standard_healers
from dig.detectors.watch import Watch
from dig.graph.records import Fate, Limits
from dig.monitor.messages import Output, Started
from dig.monitor.monitor import Monitor
from dig.traces.journal.journal import Journal

from .measure import Candidate, Table, per_unit
from .rescan import BACKENDS, check, rescanning, trace, watching

MESSAGES = 500
ROUNDS = 3
TEXT = "Count how often each value occurs in your part, and say where you are not sure."
NAMES = tuple(f"agent-{i}" for i in range(20))

PAPER = frozenset(("ET", "MC", "OE", "DL", "ER", "CLA", "RSP"))
LATER = frozenset(("FAIL", "VOID"))
"""The patterns of the paper, and those that came after the first eleven."""

ELEVEN = frozenset(detector.pattern for detector in standard()) - LATER

LIMITS = Limits(stall_factor=5, late_window_s=10, loop_limit=5, livelock_turns=25)
"""As the commands, the bus and wrapped sessions have them: every pattern is active."""


def _ring(monitor: Monitor, names: Sequence[str] = NAMES) -> Iterator[None]:
    """Pass a message round a ring for ever, one hold at a time."""
    monitor.inject(Output({"text": TEXT}, names[:1]))
    for turn in count():
        effects = monitor.start(names[turn % len(names)])
        current = next(effect for effect in effects if isinstance(effect, Started))
        fates = (Fate(current.events[0].id, "consume"),)
        output = Output({"text": TEXT, "turn": turn}, (names[(turn + 1) % len(names)],))
        monitor.end(current.activation, fates, (output,))
        yield


def messages(patterns: frozenset[str] | None = None, *, is_kept: bool) -> Callable[[int], None]:
    """Messages round a ring of twenty agents, each held, looked at and released.

    Args:
        patterns: The patterns looked for; ``None``: all.
        is_kept: Whether a journal is written.
    """

    def work(units: int) -> None:
        clock = count()
        detectors = [d for d in standard() if patterns is None or d.pattern in patterns]
        with TemporaryDirectory() as folder:
            journal = Journal(Path(folder) / "trace", clock=lambda: 0.0) if is_kept else None
            monitor = Monitor(
                NAMES, clock=lambda: next(clock) / 1000, limits=LIMITS, detectors=detectors,
                healers=standard_healers(), sink=journal,
            )  # fmt: skip
            for _ in zip(range(units), _ring(monitor), strict=False):
                pass
            if journal is not None:
                journal.close()

    return work


def _ours(patterns: frozenset[str] | None = None, *, is_kept: bool = False) -> Candidate:
    work = messages(patterns, is_kept=is_kept)

    def once() -> int:
        work(MESSAGES)
        return MESSAGES

    return once


def _spans() -> Candidate:
    """An OpenTelemetry span a message, with what a tracing monitor would write into it."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

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
        "monitor, the paper's seven patterns": _ours(PAPER),
        "monitor, thirteen patterns": _ours(),
        "monitor, thirteen patterns, journal": _ours(is_kept=True),
        "monitor without detectors": _ours(frozenset()),
    }
    for name, (package, make) in FRAMEWORKS.items():
        try:
            candidates[f"{name} ({package} {version(package)})"] = make()
        except (ImportError, PackageNotFoundError):
            missing.append((name, "not installed: pip install -e '.[bench]'", "-"))
    times = per_unit(candidates, 3 if quick else 7, process_time)
    base, span = next(iter(times.values())), [us for name, us in times.items() if "span" in name]
    rows = [
        (name, f"{us:.1f}", f"{us / base:.2f}", *(f"{us / of:.2f}" for of in span))
        for name, us in times.items()
    ]
    columns = ("", "us/message", "ratio", "spans")[: 3 + len(span)]
    lines = [*rows, *(row + ("-",) * len(span) for row in missing)]
    return Table("Peers: a message round a ring", columns, lines)


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
