"""One conversation that merges what 100,000 messages have become, one by one.

In a session each message from outside is answered by an activation of its own, and one agent
merges each of these answers into what it has so far. So the roots and the sources of its latest
event grow with every message; neither time nor memory a message may.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import count
from time import thread_time
from typing import NamedTuple

from dig.detectors import standard, standard_healers
from dig.graph.records import Fate
from dig.monitor.messages import Effect, Output, Started
from dig.monitor.monitor import Monitor

from .apart import made_ready, resident
from .measure import Table, claim

BYTES = 2_048
"""The bound: so many bytes a message (three events, two activations) may cost for good."""

GROWTH = 1.5
"""The bound: a message may cost so many times what one of the first 1,000 costs."""

PATIENCE_S = 150.0  # CPU seconds; a run that takes longer is stopped, and its row says so

WORKERS = tuple(f"worker-{i}" for i in range(8))
MERGER = "merger"


class Mark(NamedTuple):
    """A conversation at some size."""

    messages: int
    us: float  # a message, over the latest tenth
    bytes: int


def _monitor(memory: bool) -> Monitor:
    clock = count()
    return Monitor(
        (MERGER, *WORKERS),
        clock=lambda: next(clock) / 1000,
        session=True,
        memory=memory,
        detectors=standard(),
        healers=standard_healers(),
    )


def _serve(memory: bool) -> Callable[[int], Mark]:
    warm_up, monitor = _monitor(memory), _monitor(memory)
    for _ in range(1_000):
        _message(warm_up, WORKERS[0])
    del warm_up
    gc.collect()
    before, began, done = resident(), thread_time(), 0

    def mark(messages: int) -> Mark:
        nonlocal done
        start, counted = thread_time(), 0
        while done < messages and thread_time() - began < PATIENCE_S:
            if done == messages - messages // 10 or counted == 1_000:
                start, counted = thread_time(), 0
            _message(monitor, WORKERS[done % len(WORKERS)])
            done += 1
            counted += 1
        us = (thread_time() - start) / max(counted, 1) * 1e6
        return Mark(done, us, resident() - before)

    return mark


def _message(monitor: Monitor, worker: str) -> None:
    """A message comes, is answered, and its answer is merged."""
    monitor.inject(Output({"text": "a question"}, (worker,), "problem"))
    _pass_on(monitor, monitor.start(worker), "solution")
    _pass_on(monitor, monitor.start(MERGER), "message")


def _pass_on(monitor: Monitor, effects: list[Effect], kind: str) -> None:
    """Consume all that an activation sees, and send one event to the merger."""
    current = next(effect for effect in effects if isinstance(effect, Started))
    fates = [Fate(event.id, "consume") for event in current.events]
    monitor.end(current.activation, fates, [Output({"text": "an answer"}, (MERGER,), kind)])


def merging(quick: bool = False) -> Table:
    """Time and memory a message, as the conversation grows."""
    sizes = (1_000, 10_000) if quick else (1_000, 10_000, 100_000)
    rows, claims = [], []
    processes = made_ready(_serve, (False, True))
    marks_of: dict[bool, list[Mark]] = {memory: [] for memory in processes}
    for size in sizes:  # side by side: it is CPU time that is measured
        for process in processes.values():
            process.pipe.send(size)
        for memory, process in processes.items():
            marks_of[memory].append(process.wait())
    for memory, process in processes.items():
        process.close()
        marks = marks_of[memory]
        name = "session with memory" if memory else "session"
        first, last = marks[0], marks[-1]
        for mark, size in zip(marks, sizes, strict=True):
            stopped = "" if mark.messages == size else f" (stopped at {mark.messages:,})"
            rows.append(
                (
                    f"{name}: {size:,} messages{stopped}",
                    f"{mark.us:.0f}",
                    f"{mark.us / first.us:.2f}",
                    f"{mark.bytes / mark.messages:.0f}",
                )
            )
        claims.append(claim(f"{name}: us a message, last / first", last.us / first.us, GROWTH))
        claims.append(claim(f"{name}: bytes a message", last.bytes / last.messages, BYTES))
    columns = ("", "us/message", "ratio", "bytes/message")
    return Table("Merging: answers to messages, one by one", columns, rows, "\n".join(claims))
