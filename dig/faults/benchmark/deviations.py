"""Unusual acts of agents in a run, compared with runs without a fault, from the trace alone.

A sign is something that an activation or a message does, with a number: how long it took, how many
events it passed on. It is unusual if it is larger than in all but a few of the usual runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from dig.graph.records import Deliver, Emit, End, Expire, Leave, Record, Run, Start

SIGNS: Mapping[str, str] = MappingProxyType(
    {
        "failed": "crash",
        "took long": "stall",
        "waited": "hoard",
        "passed on": "pass_on",
        "discarded": "discard_needed",
        "generated nothing": "silent",
        "left": "leave",
        "expired": "drop",
        "to nobody": "address_nobody",
        "arrived late": "delay",
        "said again": "duplicate",
        "answered at once": "submit_early",
    }
)
"""Each sign, with the kind of fault that it looks like most."""

RARE = 0.02
"""The share of usual runs that may exceed a value that still counts as usual."""


class Sign(NamedTuple):
    """An act of an agent: its record, the agent, the sign, and its number."""

    t: int
    agent: str
    what: str
    value: float


def signs(records: Iterable[Record]) -> Iterator[Sign]:
    """The signs of a run, in order."""
    reader = _Reader()
    for record in records:
        yield from reader.of(record)


@dataclass(frozen=True)
class Usual:
    """The usual values of the signs in runs without a fault.

    Attributes:
        most: The largest usual value of each sign.
    """

    most: Mapping[str, float]

    @classmethod
    def of(cls, runs: Sequence[Sequence[Record]]) -> Usual:
        """The usual values in some runs; there is at least one run."""
        peaks: dict[str, list[float]] = {what: [] for what in SIGNS}
        for run in runs:
            peak = dict.fromkeys(SIGNS, 0.0)
            for sign in signs(run):
                peak[sign.what] = max(peak[sign.what], sign.value)
            for what, value in peak.items():
                peaks[what].append(value)
        place = len(runs) - 1 - int(RARE * len(runs))
        return cls({what: sorted(values)[place] for what, values in peaks.items()})

    def first_unusual(self, records: Iterable[Record]) -> Sign | None:
        """The first sign of a run that is larger than usual."""
        return next((sign for sign in signs(records) if sign.value > self.most[sign.what]), None)


class _Reader:
    def __init__(self) -> None:
        self._agents: set[str] = set()
        self._starts: dict[str, Start] = {}
        self._sent: dict[str, tuple[str, int]] = {}
        """The agent that generated an event, and the time, in microseconds."""
        self._said: set[tuple[str, str]] = set()

    def of(self, record: Record) -> Iterator[Sign]:
        match record:
            case Run(agents=agents):
                self._agents.update(agents)
            case Start():
                self._starts[record.activation] = record
            case End():
                yield from self._ended(record)
            case Emit(by=by) if by in self._starts:
                yield from self._emitted(record, self._starts[by])
            case Deliver(event=event) if event in self._sent:
                agent, us = self._sent[event]
                yield Sign(record.t, agent, "arrived late", (record.us - us) / 1_000_000)
            case Expire(event=event) if event in self._sent:
                yield Sign(record.t, self._sent[event][0], "expired", 1)
            case Leave(agent=agent):
                self._agents.discard(agent)
                yield Sign(record.t, agent, "left", 1)

    def _ended(self, end: End) -> Iterator[Sign]:
        start = self._starts[end.activation]
        fates = [fate.fate for fate in end.fates]
        yield Sign(end.t, start.agent, "took long", (end.us - start.us) / 1_000_000)
        for what, value in (
            ("failed", end.error is not None),
            ("waited", fates.count("delay")),
            ("passed on", fates.count("reroute")),
            ("discarded", fates.count("discard")),
            ("generated nothing", "consume" in fates and not end.outputs),
        ):
            yield Sign(end.t, start.agent, what, float(value))

    def _emitted(self, emit: Emit, start: Start) -> Iterator[Sign]:
        self._sent[emit.event] = (start.agent, emit.us)
        said = (start.agent, json.dumps([emit.type, emit.payload], sort_keys=True))
        if emit.final:
            yield Sign(emit.t, start.agent, "answered at once", 1 / len(start.inputs or "-"))
        elif self._agents.isdisjoint(emit.to):
            yield Sign(emit.t, start.agent, "to nobody", 1)
        yield Sign(emit.t, start.agent, "said again", float(said in self._said))
        self._said.add(said)
