"""The lengths of a team's turns, from which limits are learned.

A fixed limit is wrong for teams that think long and unevenly.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

LATEST = 99
"""The number of latest turns that a limit is learned from."""

ENOUGH_OF_TEAM = 10
"""The number of turns of a whole team from which on they tell a limit."""


class TurnLengths:
    """The lengths of the latest turns, in microseconds.

    Attributes:
        count: The number of turns.
        percentile: Their 90th percentile, by nearest rank.
    """

    __slots__ = ("_latest", "_sorted", "count", "percentile")

    def __init__(self) -> None:
        self._latest: deque[int] = deque()
        self._sorted: list[int] = []
        self.count = self.percentile = 0

    def add(self, us: int) -> None:
        """Add a duration; the oldest of more than 99 goes."""
        if len(self._latest) == LATEST:
            del self._sorted[bisect_left(self._sorted, self._latest.popleft())]
        self._latest.append(us)
        insort(self._sorted, us)
        self.count = len(self._sorted)
        self.percentile = self._sorted[-(-9 * self.count // 10) - 1]
