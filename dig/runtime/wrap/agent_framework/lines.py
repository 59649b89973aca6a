"""Who waits for what is held goes on in the order in which it came, for each executor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio


class Lines:
    """A line before each executor that somebody waits for; where nobody does, there is none."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._last: dict[str, anyio.Event] = {}

    async def through(self, executor: str, wait: Callable[[], Awaitable[None]] | None) -> None:
        """Wait, and then for all who came before.

        Args:
            executor: Who is waited for.
            wait: Waits for what is held; ``None``: nothing is, so only others are waited for.
        """
        before = self._last.get(executor)
        if before is None and wait is None:
            return
        passed = self._last[executor] = anyio.Event()
        try:
            if wait is not None:
                await wait()
            if before is not None:
                await before.wait()
        finally:
            passed.set()
            if self._last.get(executor) is passed:
                del self._last[executor]
