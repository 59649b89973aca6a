"""Ranges of a task's elements: the parts of its data, and the arithmetic of what is covered."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

Range = tuple[int, int]
"""`(start, stop)`: elements from `start`, counted from 0, to before `stop`."""

Ranges = tuple[Range, ...]
"""Disjoint ranges, in order."""


def range_of(value: Any) -> Range | None:
    """The range that a part of a payload describes, if it does."""
    if not isinstance(value, list | tuple) or [type(bound) for bound in value] != [int, int]:
        return None
    start, stop = value
    return (start, stop) if 0 <= start < stop else None


def merged(ranges: Iterable[Range]) -> Ranges:
    """Ranges in order, with those that touch or overlap as one.

    >>> merged([(5, 9), (0, 5), (20, 30)])
    ((0, 9), (20, 30))
    """
    done: list[Range] = []
    for start, stop in sorted(ranges):
        if done and start <= done[-1][1]:
            done[-1] = (done[-1][0], max(stop, done[-1][1]))
        else:
            done.append((start, stop))
    return tuple(done)


def missing(whole: Range, covers: Iterable[Range]) -> Ranges:
    """The parts of the whole that no range covers.

    >>> missing((0, 30), [(5, 9), (20, 40)])
    ((0, 5), (9, 20))
    """
    gaps: list[Range] = []
    at = whole[0]
    for start, stop in merged(covers):
        if at < min(start, whole[1]):
            gaps.append((at, min(start, whole[1])))
        at = max(at, stop)
    if at < whole[1]:
        gaps.append((at, whole[1]))
    return tuple(gaps)


def without(ranges: Ranges, others: Ranges) -> Ranges:
    """The part of some ranges that no other ones hold."""
    return tuple(gap for one in ranges for gap in missing(one, others))


def both(one: Ranges, other: Ranges) -> Ranges:
    """The elements that are in both sets of ranges.

    >>> both(((0, 10), (20, 30)), ((5, 25),))
    ((5, 10), (20, 25))
    """
    return without(one, without(one, other))


def common(one: Ranges, other: Ranges) -> int:
    """The number of elements that two sets of ranges have in common."""
    return sum(max(0, min(b, d) - max(a, c)) for a, b in one for c, d in other)


def length(ranges: Ranges) -> int:
    """The number of elements in ranges that are disjoint."""
    return sum(stop - start for start, stop in ranges)


def covers(ranges: Ranges, part: Range) -> bool:
    """Whether a range lies in one of some ranges."""
    return any(start <= part[0] and part[1] <= stop for start, stop in ranges)


def lacking(ranges: Ranges, whole: Ranges) -> float:
    """The share of the whole that some ranges do not cover; 0 if the whole is not known."""
    return 1 - common(ranges, whole) / length(whole) if whole else 0.0


def between(cuts: Iterable[int]) -> list[Range]:
    """The ranges between some numbers.

    >>> between([20, 0, 10, 10])
    [(0, 10), (10, 20)]
    """
    return list(pairwise(sorted(set(cuts))))


def range_name(part: Range) -> str:
    """The name of a range: `2000-3000`."""
    return f"{part[0]}-{part[1]}"


def named_range(name: str) -> Range:
    """The range with a name."""
    start, stop = name.split("-")
    return int(start), int(stop)
