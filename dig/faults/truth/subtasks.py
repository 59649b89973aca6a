"""The parts of the task: where they begin and end, what solves them, and whether one is missing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from dig.tasks.simulated.parts import Range

from .course import Course, Event
from .elements import covers


def own_cuts(course: Course) -> set[int]:
    """Where the parts that a run speaks of begin and end."""
    return {bound for event in course.events.values() for r in event.about for bound in r}


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


def solutions(course: Course, piece: Range) -> list[Event]:
    """The solutions of a part, answers among them, as generated."""
    return [
        event
        for event in course.events.values()
        if event.type == "solution" and covers(event.about, piece)
    ]


def solved_us(course: Course, piece: Range) -> int | None:
    """When a part was first solved, in microseconds."""
    return next((event.us for event in solutions(course, piece)), None)


def gone_t(course: Course, event: Event) -> int | None:
    """The record at which a solution was consumed or lost; what was made of it may be there."""
    end = course.consumption(event)
    if end is None:
        return event.lost_t if event.is_lost else None
    return max([end.t, *(course.events[one].t for one in end.outputs)])


def is_missing(course: Course, piece: Range) -> bool:
    """Whether a part is not in the answer; without one, whether no solution of it is left."""
    if course.answer is not None:
        return not covers(course.answer.about, piece)
    return all(gone_t(course, event) is not None for event in solutions(course, piece))
