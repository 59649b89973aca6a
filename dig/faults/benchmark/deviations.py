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

from dig.graph.records import Deliver, Emit, End, Expire, Leave, Record, Run
from dig.traces.run import RecordedActivation, RecordedRun

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


class Deviation(NamedTuple):
    """An act of an agent: its record, the agent, the sign, and its number."""

    t: int
    agent: str
    what: str
    value: float


def signs(records: Iterable[Record]) -> Iterator[Deviation]:
    """The signs of a run, in order."""
    run = RecordedRun(records)
    present: set[str] = set()
    said: set[tuple[str, str]] = set()
    for record in run.records:
        match record:
            case Run(agents=agents):
                present.update(agents)
            case End():
                yield from _ended(run, record)
            case Emit(by=str(by)) if by in run.activations:
                yield from _emitted(record, run.activations[by], present, said)
            case Deliver(event=name) | Expire(event=name):
                event = run.events[name]
                if event.agent is not None:
                    took = (record.us - event.us) / 1_000_000
                    is_late = isinstance(record, Deliver)
                    what, value = ("arrived late", took) if is_late else ("expired", 1)
                    yield Deviation(record.t, event.agent, what, value)
            case Leave(agent=agent):
                present.discard(agent)
                yield Deviation(record.t, agent, "left", 1)


@dataclass(frozen=True)
class UsualSigns:
    """The usual values of the signs in runs without a fault.

    Attributes:
        most: The largest usual value of each sign.
    """

    most: Mapping[str, float]

    @classmethod
    def of(cls, runs: Sequence[Sequence[Record]]) -> UsualSigns:
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

    def first_unusual(self, records: Iterable[Record]) -> Deviation | None:
        """The first sign of a run that is larger than usual."""
        return next((sign for sign in signs(records) if sign.value > self.most[sign.what]), None)


def _ended(run: RecordedRun, end: End) -> Iterator[Deviation]:
    activation = run.activations[end.activation]
    fates = [fate.fate for fate in end.fates]
    yield Deviation(end.t, activation.agent, "took long", (end.us - activation.us) / 1_000_000)
    for what, value in (
        ("failed", end.error is not None),
        ("waited", fates.count("delay")),
        ("passed on", fates.count("reroute")),
        ("discarded", fates.count("discard")),
        ("generated nothing", "consume" in fates and not end.outputs),
    ):
        yield Deviation(end.t, activation.agent, what, float(value))


def _emitted(
    emit: Emit, activation: RecordedActivation, present: set[str], said: set[tuple[str, str]]
) -> Iterator[Deviation]:
    agent, text = activation.agent, json.dumps([emit.type, emit.payload], sort_keys=True)
    if emit.final:
        yield Deviation(emit.t, agent, "answered at once", 1 / len(activation.inputs or "-"))
    elif present.isdisjoint(emit.to):
        yield Deviation(emit.t, agent, "to nobody", 1)
    yield Deviation(emit.t, agent, "said again", float((agent, text) in said))
    said.add((agent, text))
