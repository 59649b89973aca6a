"""What exporting to OpenTelemetry costs: the run itself, and the threads beside it."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Sequence
from threading import Event
from typing import Any

import anyio
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider

from dig.detectors import standard, standard_healers
from dig.graph.records import Record
from dig.runtime import Bus, Setup
from dig.traces.otel.export_queue import ROOM, Delivery, SpanQueue, size_of
from dig.traces.otel.follow import Follower
from dig.traces.otel.ids import Origin
from dig.traces.otel.items import Item, Span
from dig.traces.otel.mapping import Mapping
from dig.traces.otel.writer import Writer

from .measure import Table, claim, compared, per_unit
from .teams import NAMES, PROBLEM, RECORDS, act
from .traces import ring

ORIGIN = Origin("bench", 0)


def _encoding() -> Delivery[Any]:
    """A delivery that does everything but send."""

    def export(batch: Sequence[Any]) -> bool:
        return bool(encode_spans(batch).SerializeToString())

    return Delivery("bench", export, size=size_of)


def _provider(queue: Delivery[Any]) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SpanQueue(queue))
    return provider


def _run(export: bool) -> tuple[float, float, float]:
    """One run: its time, that of its own thread, and that until all is exported, in seconds."""
    setup = Setup(limit_s=1e6, detectors=standard, healers=standard_healers)
    bus = Bus(dict.fromkeys(NAMES, act), setup)
    queue = _encoding()
    follower = Follower(lambda seconds: Writer(_provider(queue)), ORIGIN)
    if export:
        follower.attach(bus)
    wall, own = time.perf_counter(), time.thread_time()
    anyio.run(bus.run, PROBLEM)
    times = time.perf_counter() - wall, time.thread_time() - own
    follower.close()
    queue.close(60.0)
    assert queue.lost == follower.missed == 0
    return *times, time.perf_counter() - wall


def hot_path(quick: bool = False) -> Table:
    """What a record costs the run, with and without an export.

    The run is one that does nothing but run: the agents of a real one wait for a language model,
    and meanwhile the threads of the export have Python's lock for themselves.
    """
    runs: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    for turn in range(4 if quick else 10):
        for export, times in runs.items():
            gc.collect()
            result = _run(export)
            if turn:  # the first turn warms up
                times.append(result)
    us = {
        export: [statistics.median(column) / RECORDS * 1e6 for column in zip(*times, strict=True)]
        for export, times in runs.items()
    }
    rows = [
        (what, f"{alone:.2f}", f"{beside:.2f}", f"{beside / alone:.2f}")
        for what, alone, beside in zip(
            ("the run", "its own thread alone", "until all is exported"),
            us[False], us[True], strict=True,
        )
    ]  # fmt: skip
    columns = ("us/record", "without an export", "with one", "ratio")
    note = claim("its own thread alone, ratio", us[True][1] / us[False][1], 1.1)
    return Table("Export beside a run on the bus, 6 agents, 2,000 activations", columns, rows, note)


def spans(quick: bool = False) -> Table:
    """What a span costs off the hot path, for 20,000 activations of which nothing is lost."""
    records = ring(records=8_000 if quick else 80_003)
    items = _mapped(records, Mapping(ORIGIN))
    made = sum(isinstance(item, Span) for item in items)

    def written(queue: Delivery[Any] | None) -> int:
        provider = _provider(queue) if queue else TracerProvider(shutdown_on_exit=False)
        writer = Writer(provider)
        for start in range(0, len(items), 1000):
            writer.write(items[start : start + 1000])
            if queue is not None:
                queue.wait_for_room(60.0)
        if queue is not None:
            queue.close(60.0)
            assert queue.delivered == made
        return made

    def bare() -> int:
        tracer = TracerProvider(shutdown_on_exit=False).get_tracer("bench")
        for _ in range(made):
            tracer.start_span("invoke_agent a").end()
        return made

    times = per_unit(
        {
            "a bare span of the SDK": bare,
            "records into spans, as data": lambda: len(_mapped(records, Mapping(ORIGIN))) and made,
            "spans into the SDK": lambda: written(None),
            "spans into the SDK and into bytes": lambda: written(_encoding()),
        },
        rounds=3,
    )
    whole = times["records into spans, as data"] + times["spans into the SDK and into bytes"]
    return compared(
        f"A span off the hot path, {made:,} spans", "span", times,
        f"From records to bytes: {1e6 / whole:,.0f} spans a second.",
    )  # fmt: skip


def _mapped(records: Sequence[Record], mapping: Mapping) -> list[Item]:
    return [item for record in records for item in mapping.feed(record)]


def dead_receiver(quick: bool = False) -> Table:
    """How much memory waits for a receiver that never answers."""
    items = _mapped(ring(records=32_000 if quick else 320_000), Mapping(ORIGIN))
    rows = []
    for part in (0.2, 0.4, 1.0):
        gate = Event()
        queue: Delivery[Any] = Delivery("bench", lambda batch, gate=gate: not gate.wait(), gate.set)
        writer = Writer(_provider(queue))
        gc.collect()
        tracemalloc.start()
        writer.write(items[: int(len(items) * part)])
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        rows.append((f"{queue.offered:,}", f"{queue.waiting:,}", f"{queue.refused:,}",
                     f"{used / 1e6:.0f}"))  # fmt: skip
        queue.close(0.0)
    columns = ("spans made", "waiting", "dropped and counted", "MB")
    return Table(f"A dead receiver: room for {ROOM:,} spans", columns, rows)
