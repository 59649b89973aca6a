"""What a run keeps: bytes an event, and how long a full garbage collection takes.

Memory is what the process holds (resident, so with the allocator's waste) beyond what it held
before the run. Marks are taken while one run grows, in a process of its own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache
from importlib import import_module
from statistics import median
from time import thread_time_ns
from typing import Any, NamedTuple

from .apart import Apart, Pauses, resident
from .measure import Table, claim
from .workload import Work

BYTES = 512
"""The bound: so many bytes an event may cost for good."""

GROWTH = 1.5
"""The bound: a full collection at the end may take so many times that at 10,000 events."""


class Mark(NamedTuple):
    """A run at some size."""

    events: int
    bytes: int
    full_ms: float  # a full collection
    pause_ms: float  # the longest pause of any collection since the mark before
    request_ms: float  # the longest request since the mark before
    objects: int  # that a full collection looks at


def _serve(session: bool) -> Callable[[int], Mark]:
    work, pauses = Work(session=session), Pauses()
    gc.collect()
    before = resident()

    def mark(events: int) -> Mark:
        pauses.taken()
        longest = 0
        while work.events < events:
            most = min(events, work.events + 1_000)
            while work.events < most:
                work.step()
            longest = max(longest, *(max(times) for times in work.times.values()))
            work.times = {}
        pause = max((ns for generation in pauses.taken() for ns in generation), default=0)
        held = resident() - before
        return Mark(events, held, full_ms(), pause / 1e6, longest / 1e6, len(gc.get_objects()))

    return mark


def full_ms() -> float:
    """How long a full garbage collection takes now."""
    times = []
    for _ in range(5):
        start = thread_time_ns()
        gc.collect()
        times.append(thread_time_ns() - start)
    return median(times) / 1e6


@cache
def _marks(session: bool, most: int) -> list[Mark]:
    process = Apart(_serve, session)
    process.wait()
    marks = [process.ask(10**power) for power in range(3, len(str(most)))]
    process.close()
    return marks


def _as_networkx(events: int) -> Callable[[Any], Mark]:
    """The same run as a networkx graph, alone: what was measured of it."""
    work, pauses = Work(), Pauses()
    while work.events < events:
        work.step()
    graph = work.monitor.graph
    import_module("networkx")  # or what it imports would count
    gc.collect()
    before = resident()
    pauses.taken()
    kept = graph.to_networkx()
    pause = max((ns for generation in pauses.taken() for ns in generation), default=0)
    held = resident() - before
    del work, graph
    mark = Mark(events, held, full_ms(), pause / 1e6, 0.0, len(gc.get_objects()))
    return lambda question: mark if len(kept) else None  # type: ignore[return-value]


@cache
def _networkx_marks() -> list[Mark]:
    marks = []
    for events in (10_000, 100_000):
        process = Apart(_as_networkx, events)
        process.wait()
        marks.append(process.ask())
        process.close()
    return marks


def memory(quick: bool = False) -> Table:
    """Bytes kept for an event."""
    most = 100_000 if quick else 1_000_000
    lines = {
        "session": _marks(True, most),
        "one run": _marks(False, 100_000),
        "as a networkx graph": _networkx_marks(),
    }
    rows = [
        (f"{name}: {mark.events:,} events", f"{mark.bytes / mark.events:.0f}")
        for name, marks in lines.items()
        for mark in marks
        if mark.events >= 10_000  # below, the allocator's own steps are what one sees
    ]
    last = lines["session"][-1]
    note = claim(f"bytes an event at {most:,} events", last.bytes / most, BYTES)
    return Table("Memory: resident bytes an event; monitor, 20 agents", ("", "bytes"), rows, note)


def pauses(quick: bool = False) -> Table:
    """Full garbage collections, at marks of a growing run."""
    most = 100_000 if quick else 1_000_000
    lines = {"session": _marks(True, most), "one run": _marks(False, 100_000)}
    rows = [
        (
            f"{name}: {mark.events:,} events",
            f"{mark.full_ms:.2f}",
            f"{mark.pause_ms:.2f}",
            f"{mark.request_ms:.2f}",
            f"{mark.objects:,}",
        )
        for name, marks in lines.items()
        for mark in marks
    ]
    rows += [
        (f"networkx graph of it: {m.events:,}", f"{m.full_ms:.2f}", f"{m.pause_ms:.2f}", "-",
         f"{m.objects:,}")
        for m in _networkx_marks()
    ]  # fmt: skip
    marks = lines["session"]
    growth = marks[-1].full_ms / marks[1].full_ms
    note = claim(f"a full collection at {most:,} / 10,000 events", growth, GROWTH)
    columns = ("ms", "full gc", "longest gc", "longest request", "objects")
    return Table("Pauses: monitor, 20 agents; longest since the row above", columns, rows, note)
