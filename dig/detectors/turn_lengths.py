"""The lengths of a team's turns, to learn limits from.

A fixed limit is wrong for teams that think long and unevenly.
"""

from __future__ import annotations

from collections import deque

LATEST = 99
"""The number of latest turns that a limit is learned from."""

ENOUGH_OF_TEAM = 10
"""The number of turns of a whole team from which on they tell a limit."""


class TurnLengths:
    """The lengths of the latest turns, in microseconds."""

    __slots__ = ("_latest", "_percentile")

    def __init__(self) -> None:
        self._latest: deque[int] = deque(maxlen=LATEST)
        self._percentile: int | None = None  # worked out when it is asked for

    def add(self, us: int) -> None:
        """Add a duration; the oldest of more than 99 goes."""
        self._latest.append(us)
        self._percentile = None

    def __len__(self) -> int:
        return len(self._latest)

    @property
    def percentile(self) -> int:
        """The 90th percentile, by nearest rank, of at least a single length."""
        if self._percentile is None:
            self._percentile = sorted(self._latest)[-(-9 * len(self) // 10) - 1]
        return self._percentile
