"""Lineage: sets of roots and sources, causal ancestry, and uncovered work.

An event carries the set of its roots and of its sources. Conversations that merge make these
sets grow, by numbers that mostly follow each other, so a set is kept as ranges of numbers and
shared between all events that have the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .graph import InteractionGraph
    from .history import History
    from .rewrites import Rewrites


class RangeSet:
    """An immutable set of whole numbers, kept as sorted ranges that neither meet nor overlap.

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
        """The set of one number."""
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

    def __repr__(self) -> str:
        return f"RangeSet({self.ranges})"

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Start and end (not included) of each range."""
        return zip(self.ranges[::2], self.ranges[1::2], strict=True)

    def minus(self, other: RangeSet) -> RangeSet:
        """The numbers that are in this set only."""
        if self.ranges == other.ranges:
            return NOTHING
        left: list[int] = []
        j = 0
        for start, end in self.pairs():
            while j < len(other.ranges) and other.ranges[j + 1] <= start:
                j += 2
            k = j
            while k < len(other.ranges) and other.ranges[k] < end:
                if start < other.ranges[k]:
                    left += (start, other.ranges[k])
                start = other.ranges[k + 1]
                k += 2
            if start < end:
                left += (start, end)
        return RangeSet(tuple(left))

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
        """The numbers that are in either set; one of the two itself, if it holds the other."""
        a, b = self.ranges, other.ranges
        if a == b or not b:
            return self
        if not a:
            return other
        merged: list[int] = []
        pairs = [(a[i], a[i + 1]) for i in range(0, len(a), 2)]
        pairs += [(b[i], b[i + 1]) for i in range(0, len(b), 2)]
        for start, end in sorted(pairs):
            if merged and start <= merged[-1]:
                merged[-1] = max(merged[-1], end)
            else:
                merged += (start, end)
        ranges = tuple(merged)
        return self if ranges == a else other if ranges == b else RangeSet(ranges)


NOTHING = RangeSet()


def union(sets: Iterable[RangeSet]) -> RangeSet:
    """The union of some sets; the very same object, where they are all alike."""
    result = NOTHING
    for one in sets:
        if one is not result:
            result = result.union(one)
    return result


class Answer(NamedTuple):
    """What stands behind a final event.

    `activations` is A of the semantics: the submitter, its ancestors and, where memory counts,
    what its agent did before, with the ancestors of that. `consumed` are the events that they
    consumed. Both are numbers in the graph's history.
    """

    activations: set[int]
    consumed: set[int]


def causes(history: History, activations: Iterable[int]) -> Answer:
    """Walk back from some ended activations over all that they used, up to what is settled."""
    seen: set[int] = set()
    consumed: set[int] = set()
    stack = [v for v in activations if not history.settled[v]]
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        for e in history.inputs(v):
            if e not in consumed:
                consumed.add(e)
                g = history.generator[e]
                if g >= 0 and not history.settled[g]:
                    stack.append(g)
    return Answer(seen, consumed)


def ancestors(history: History, v: int) -> set[int]:
    """The activations with a causal path to activation `v`, settled ones too."""
    seen: set[int] = set()
    stack = [v]
    while stack:
        for e in history.inputs(stack.pop()):
            g = history.generator[e]
            if g >= 0 and g not in seen:
                seen.add(g)
                stack.append(g)
    return seen


def answer(graph: Rewrites, event: int) -> Answer:
    """What stands behind the final event with this number."""
    history = graph.history
    v = history.generator[event]
    start = [v]
    if graph.run.memory or not history.inputs(v):
        start += history.ended_before(v)
    return causes(history, start)


def uncovered(graph: InteractionGraph, event: int, behind: Answer) -> list[int]:
    """The needed work that a final event lost on the way, in order of generation.

    Args:
        graph: The graph at the record that generated the final event.
        event: The final event's number.
        behind: What stands behind it (`answer`).

    Returns:
        Numbers of work events: problems from outside, and outputs of problem-generating
        activations behind the event, that nothing behind it consumed and that are not open
        (paper, section 4.4; the AND-join reading of a path from each part to the answer).
    """
    history = graph.history
    needed = {
        e
        for v in behind.activations
        if history.is_generating(v)
        for e in history.outputs(v)
        if history.is_work(e)
    }
    if graph.run.session:
        asked = graph.problems.asked(behind)
        needed = {e for e in needed if not history.sources[e].isdisjoint(asked)}
    else:
        needed.update(e for e in history.source_events if history.is_work(e))
    return sorted(e for e in needed - behind.consumed if not graph.is_open(e))
