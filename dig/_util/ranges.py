"""Sets of mostly consecutive numbers, as ranges.

An event carries the set of its roots and of its sources. Conversations that merge make these
sets grow, by numbers in a row; as ranges they stay small, and are shared between all events that
have the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


class RangeSet:
    """An immutable set of whole numbers, kept as sorted ranges without contact or overlap.

    >>> one = RangeSet.single(1).union(RangeSet.single(2))
    >>> list(one.union(RangeSet.single(7))), one.ranges
    ([1, 2, 7], (1, 3))
    """

    __slots__ = ("ranges",)

    def __init__(self, ranges: tuple[int, ...] = ()) -> None:
        """Make a set of `ranges`: start, end (not included), start, end, ... in order."""
        self.ranges = ranges

    @classmethod
    def single(cls, number: int) -> RangeSet:
        """The set of a single number."""
        return cls((number, number + 1))

    @classmethod
    def of(cls, numbers: Iterable[int]) -> RangeSet:
        """The set of some numbers, given in ascending order."""
        ranges: list[int] = []
        for number in numbers:
            if ranges and ranges[-1] == number:
                ranges[-1] += 1
            else:
                ranges += (number, number + 1)
        return cls(tuple(ranges))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __iter__(self) -> Iterator[int]:
        for i in range(0, len(self.ranges), 2):
            yield from range(self.ranges[i], self.ranges[i + 1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RangeSet) and self.ranges == other.ranges

    def __hash__(self) -> int:
        return hash(self.ranges)

    def __len__(self) -> int:
        return sum(self.ranges[1::2]) - sum(self.ranges[::2])

    def __repr__(self) -> str:
        return f"RangeSet({self.ranges})"

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Start and end (not included) of each range."""
        return zip(self.ranges[::2], self.ranges[1::2], strict=True)

    def minus(self, other: RangeSet) -> RangeSet:
        """The numbers in the first set only."""
        if self.ranges == other.ranges:
            return NOTHING
        remaining: list[int] = []
        j = 0
        for start, end in self.pairs():
            while j < len(other.ranges) and other.ranges[j + 1] <= start:
                j += 2
            k = j
            while k < len(other.ranges) and other.ranges[k] < end:
                if start < other.ranges[k]:
                    remaining += (start, other.ranges[k])
                start = other.ranges[k + 1]
                k += 2
            if start < end:
                remaining += (start, end)
        return RangeSet(tuple(remaining))

    def common(self, other: RangeSet) -> RangeSet:
        """The numbers in both sets."""
        return self.minus(self.minus(other))

    def renumber(self, rank: Sequence[int]) -> RangeSet:
        """The set after an eviction; `rank[n]` counts the remaining numbers below `n`."""
        ranges: list[int] = []
        for start, end in ((rank[a], rank[b]) for a, b in self.pairs()):
            if ranges and ranges[-1] == start:
                ranges[-1] = end
            elif start < end:
                ranges += (start, end)
        return RangeSet(tuple(ranges))

    def isdisjoint(self, other: RangeSet) -> bool:
        """Whether no number is in both sets."""
        a, b = self.ranges, other.ranges
        if a == b:
            return not a
        i = j = 0
        while i < len(a) and j < len(b):
            if a[i + 1] <= b[j]:
                i += 2
            elif b[j + 1] <= a[i]:
                j += 2
            else:
                return False
        return True

    def union(self, other: RangeSet) -> RangeSet:
        """The numbers in either set; the larger object itself, if it contains the smaller."""
        a, b = self.ranges, other.ranges
        if a == b or not b:
            return self
        if not a:
            return other
        merged: list[int] = []
        for start, end in sorted([*self.pairs(), *other.pairs()]):
            if merged and start <= merged[-1]:
                merged[-1] = max(merged[-1], end)
            else:
                merged += (start, end)
        ranges = tuple(merged)
        return self if ranges == a else other if ranges == b else RangeSet(ranges)


NOTHING = RangeSet()


def union(sets: Iterable[RangeSet]) -> RangeSet:
    """The union of some sets; the same object, if all are equal."""
    result = NOTHING
    for numbers in sets:
        if numbers.ranges and numbers is not result:  # shared objects cost one comparison
            result = result.union(numbers) if result.ranges else numbers
    return result
