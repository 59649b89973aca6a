"""Who is inside the monitor: one thread at a time, and nobody twice."""

from __future__ import annotations

import time
from threading import Lock, get_ident


class Entrance:
    """Lets one thread at a time into the monitor, and knows since when it is in there.

    Attributes:
        entries: How often somebody has entered.
        owner: The thread that is inside, if one is.
        since: When it entered, in seconds on `time.monotonic`.
    """

    def __init__(self) -> None:
        """Begin with nobody inside."""
        self._lock = Lock()
        self.entries = 0
        self.owner: int | None = None
        self.since = 0.0

    @property
    def is_mine(self) -> bool:
        """Whether the thread that asks is inside."""
        return self.owner == get_ident()

    def enter(self, timeout_s: float = -1.0) -> bool:
        """Enter, after whoever is inside.

        Args:
            timeout_s: How long to wait; negative: for as long as it takes.

        Returns:
            Whether one is inside now. Not, if one was already: a detector, say, that calls the
            team would see a graph in the middle of a change.
        """
        if self.is_mine or not self._lock.acquire(timeout=timeout_s):
            return False
        self.owner = get_ident()
        self.entries += 1
        self.since = time.monotonic()
        return True

    def leave(self) -> None:
        """Leave."""
        self.owner = None
        self._lock.release()
