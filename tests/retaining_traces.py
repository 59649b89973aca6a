"""Random sessions whose graph lets go of history while detectors look at their traces."""

from __future__ import annotations

import random

from dig.detectors import standard
from dig.detectors.finding import Finding
from dig.detectors.watch import Watch
from dig.graph.codec import decode

from .comparison import LENGTHS
from .oracle import Row
from .random_traces import random_trace

NAMING = ("redirect", "expire", "deliver")


def session_rows(number: int) -> list[Row]:
    """The rows of a random session; what was healed is told as incidents.

    A heal row may name any finding, where a monitor names one of the call in progress.
    """
    rng = random.Random(number)
    rows = random_trace(rng, length=2 * rng.choice(LENGTHS), session=True)
    told = {"kind": "incident", "what": "healed", "detail": None}
    return [{"t": r["t"], "ts": r["ts"], **told} if r["kind"] == "heal" else r for r in rows]


def found_letting_go(
    rows: list[Row], seed: int, keep: int, often: float
) -> tuple[list[Row], Watch]:
    """What is found in a session whose graph lets go of what it can before some of its rows.

    What a later row sends on, calls back or accepts is pinned, as a monitor pins what it may.
    """
    rng = random.Random(seed)
    watch, found = Watch(standard(), on_fault=_fail), list[Finding]()
    named = [(row["t"], row["event"]) for row in rows if row["kind"] in NAMING]
    for row in rows:
        if watch.graph.t >= 0 and not watch.graph.awaited and rng.random() < often:
            watch.graph.evict(keep, {event for t, event in named if t >= row["t"]})
            watch.forget()
        found += watch.feed(decode(row))
    return [finding.row() for finding in found], watch


def _fail(*fault: str) -> None:
    raise AssertionError(fault)
