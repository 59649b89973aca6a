"""The data elements that the events of a simulated task are about, as ranges, and their sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig.tasks.simulated.parts import Range, merged, missing, range_of
from dig.traces.run import RecordedEvent, RecordedRun

Ranges = tuple[Range, ...]
"""Disjoint ranges of elements of the task, in order."""


def about(kind: str, payload: Any) -> Ranges:
    """The elements of the task that an event of some type is about, as far as its payload says."""
    if not isinstance(payload, Mapping):
        return ()
    given = payload.get("covers") if kind == "solution" else [payload.get("part")]
    ranges = [range_of(value) for value in given] if isinstance(given, list) else []
    return () if None in ranges else merged(filter(None, ranges))


def data_of(event: RecordedEvent) -> Ranges:
    """The elements of the task that an event is about."""
    return about(event.type, event.payload)


def report_to(event: RecordedEvent) -> Any:
    """The agent that the result of an event is to be reported to, as far as its payload says."""
    return event.payload.get("report_to") if isinstance(event.payload, dict) else None


def whole_task(run: RecordedRun) -> Ranges:
    """The elements of the task: those of the first problem from outside that names any."""
    posed = (data_of(event) for event in run.events.values() if event.by is None)
    return next(filter(None, posed), ())


def solutions_kept(run: RecordedRun, agent: str) -> list[RecordedEvent]:
    """The solutions that an agent was to merge and still has in front of it in the end."""
    return [
        event
        for event in run.events.values()
        if event.type == "solution"
        and event.is_work
        and run.is_unread(event)
        and report_to(event) == agent
        and any(to == agent for to, _ in event.arrivals)
    ]


def common(one: Ranges, other: Ranges) -> int:
    """How many elements two sets of ranges have in common."""
    return sum(max(0, min(b, d) - max(a, c)) for a, b in one for c, d in other)


def length(ranges: Ranges) -> int:
    """How many elements there are in ranges that are disjoint."""
    return sum(stop - start for start, stop in ranges)


def covers(ranges: Ranges, piece: Range) -> bool:
    """Whether a range lies in some ranges."""
    return any(start <= piece[0] and piece[1] <= stop for start, stop in ranges)


def without(ranges: Ranges, others: Ranges) -> Ranges:
    """The part of some ranges that no other ones hold."""
    return tuple(gap for one in ranges for gap in missing(one, others))


def lacking(ranges: Ranges, whole: Ranges) -> float:
    """Which share of the whole some ranges do not cover; none, if nobody knows the whole."""
    return 1 - common(ranges, whole) / length(whole) if whole else 0.0
