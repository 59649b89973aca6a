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

    What a later row sends on, calls back, accepts or speaks of is pinned, as a monitor pins what it
    may. (A host that speaks of what its session has let go of says less, by itself.)
    """
    rng = random.Random(seed)
    watch, found = Watch(standard(), on_fault=_fail), list[Finding]()
    named = [(row["t"], name) for row in rows for name in _named(row)]
    for row in rows:
        if watch.graph.t >= 0 and not watch.graph.awaited and rng.random() < often:
            watch.graph.evict(keep, {event for t, event in named if t >= row["t"]})
            watch.forget()
        found += watch.feed(decode(row))
    return [finding.row() for finding in found], watch


def _named(row: Row) -> list[str]:
    """What a row names that was there before."""
    detail = row.get("detail") if row["kind"] == "incident" else None
    told = detail if isinstance(detail, dict) else {}
    names = [told.get("event"), told.get("activation"), row.get("because")]
    names += [row["event"]] if row["kind"] in NAMING else []
    return [name for name in names if isinstance(name, str)]


def _fail(*fault: str) -> None:
    raise AssertionError(fault)
