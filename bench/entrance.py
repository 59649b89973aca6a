"""What it costs to let a payload in: to copy it, to measure it, to mask secrets in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from dig import Monitor, Output
from dig._util.json_values import plain
from dig.monitor.sanitize import Sanitizer

from .measure import Table

SENTENCE = "Count how often each value occurs in your part, and say where you are not sure. "
PAYLOADS: dict[str, Any] = {
    "a sentence": SENTENCE,
    "an answer, 4 KB": SENTENCE * 50,
    "an answer that speaks of keys, 4 KB": (SENTENCE + "The key of the token is a secret. ") * 35,
    "an object of 20 texts": {f"part {i}": SENTENCE for i in range(20)},
    "10,000 numbers": list(range(10_000)),
}


def entrance(quick: bool) -> Table:
    """CPU time of a value's way in, and of a whole `inject` with it."""
    rounds = 5 if quick else 25
    rows = []
    for name, payload in PAYLOADS.items():
        ways: list[Callable[[], Any]] = [
            partial(plain, payload),
            partial(Sanitizer(redacts=False).value, payload),
            partial(Sanitizer(redacts=True).value, payload),
            _inject(payload, redacts=False),
            _inject(payload, redacts=True),
        ]
        taken = [_microseconds(way, rounds) for way in ways]
        copied, measured, masked, bare, whole = taken
        rows.append(
            (name, f"{copied:.1f}", f"{measured:.1f}", f"{masked:.1f}", f"{whole / bare:.2f}")
        )
    return Table(
        "A payload's way in, microseconds of CPU time",
        ("payload", "copied", "and measured", "and masked", "inject, masked / not"),
        rows,
        "medians; `inject` without journal and detectors: the last column is the most it can be",
    )


def _inject(payload: Any, *, redacts: bool) -> Callable[[], Any]:
    monitor = Monitor(["a"], clock=lambda: 0.0, redacts=redacts)
    return lambda: monitor.inject(Output(payload, ("a",)))


def _microseconds(do: Callable[[], Any], rounds: int, calls: int = 100) -> float:
    taken = []
    for _ in range(rounds):
        began = time.thread_time()
        for _ in range(calls):
            do()
        taken.append((time.thread_time() - began) * 1e6 / calls)
    return median(taken)
