"""Ranges of a task's elements, and the arithmetic of coverage."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

Range = tuple[int, int]
"""`(start, stop)`: elements from `start`, counted from 0, to before `stop`."""

Ranges = tuple[Range, ...]
"""Disjoint ranges, in order."""


def range_of(value: Any) -> Range | None:
    """Read a part of a payload as a range, if possible."""
    if not isinstance(value, list | tuple) or [type(bound) for bound in value] != [int, int]:
        return None
    start, stop = value
    return (start, stop) if 0 <= start < stop else None


def merge(ranges: Iterable[Range]) -> Ranges:
    """Sort ranges, and join ranges that touch or overlap.

    >>> merged([(5, 9), (0, 5), (20, 30)])
    ((0, 9), (20, 30))
    """
    result: list[Range] = []
    for start, stop in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(stop, result[-1][1]))
        else:
            result.append((start, stop))
    return tuple(result)


def missing(target: Range, covers: Iterable[Range]) -> Ranges:
    """The parts of the whole without any range.

    >>> missing((0, 30), [(5, 9), (20, 40)])
    ((0, 5), (9, 20))
    """
    gaps: list[Range] = []
    at = target[0]
    for start, stop in merge(covers):
        if at < min(start, target[1]):
            gaps.append((at, min(start, target[1])))
        at = max(at, stop)
    if at < target[1]:
        gaps.append((at, target[1]))
    return tuple(gaps)


def difference(ranges: Ranges, excluded: Ranges) -> Ranges:
    """The elements of some ranges outside all others."""
    return tuple(gap for part in ranges for gap in missing(part, excluded))


def intersection(first: Ranges, other: Ranges) -> Ranges:
    """The elements in both sets of ranges.

    >>> both(((0, 10), (20, 30)), ((5, 25),))
    ((5, 10), (20, 25))
    """
    return difference(first, difference(first, other))


def common(first: Ranges, other: Ranges) -> int:
    """The number of elements in both sets of ranges."""
    return sum(max(0, min(b, d) - max(a, c)) for a, b in first for c, d in other)


def length(ranges: Ranges) -> int:
    """The number of elements in disjoint ranges."""
    return sum(stop - start for start, stop in ranges)


def covers(ranges: Ranges, part: Range) -> bool:
    """Whether a range lies in another."""
    return any(start <= part[0] and part[1] <= stop for start, stop in ranges)


def lacking(ranges: Ranges, target: Ranges) -> float:
    """The share of the whole without any range; 0 if the whole is unknown."""
    return 1 - common(ranges, target) / length(target) if target else 0.0


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
