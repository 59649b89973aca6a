"""The parts of the task: where they begin and end, what solves them, and whether one is missing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from dig.tasks.simulated.parts import Range
from dig.traces.run import RecordedEvent, RecordedRun

from .data_ranges import covers, data_of


def own_cuts(run: RecordedRun) -> set[int]:
    """Where the parts that a run speaks of begin and end."""
    return {bound for event in run.events.values() for r in data_of(event) for bound in r}


def pieces(cuts: Iterable[int]) -> list[Range]:
    """The ranges between some numbers."""
    return list(pairwise(sorted(set(cuts))))


def part_name(piece: Range) -> str:
    """The name of a part."""
    return f"{piece[0]}-{piece[1]}"


def piece_of(name: str) -> Range:
    """The part with a name."""
    start, stop = name.split("-")
    return int(start), int(stop)


def solutions(run: RecordedRun, piece: Range) -> list[RecordedEvent]:
    """The solutions of a part, answers among them, as generated."""
    return [
        event
        for event in run.events.values()
        if event.type == "solution" and covers(data_of(event), piece)
    ]


def solved_us(run: RecordedRun, piece: Range) -> int | None:
    """When a part was first solved, in microseconds."""
    return next((event.us for event in solutions(run, piece)), None)


def gone_t(run: RecordedRun, event: RecordedEvent) -> int | None:
    """The record at which a solution was consumed or lost; what was made of it may be there."""
    end = run.consumption(event)
    if end is None:
        return run.orphaned_t(event.id) if run.is_orphaned(event.id) else None
    return max([end.t, *(run.events[one].t for one in end.outputs)])


def is_missing(run: RecordedRun, piece: Range) -> bool:
    """Whether a part is not in the answer; without one, whether no solution of it is left."""
    if run.answer is not None:
        return not covers(data_of(run.answer), piece)
    return all(gone_t(run, event) is not None for event in solutions(run, piece))
