"""Who waits for what is held goes on in the order in which it came, for each recipient."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable

import anyio


class Lines:
    """A line before each recipient that somebody waits for; where nobody does, there is none."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._last: dict[Hashable, anyio.Event] = {}

    async def through(
        self, recipient: Hashable, wait: Callable[[], Awaitable[None]] | None
    ) -> None:
        """Wait, and then for all who came before.

        Args:
            recipient: Who is waited for.
            wait: Waits for what is held; ``None``: nothing is, so only others are waited for.
        """
        before = self._last.get(recipient)
        if before is None and wait is None:
            return
        passed = self._last[recipient] = anyio.Event()
        try:
            if wait is not None:
                await wait()
            if before is not None:
                await before.wait()
        finally:
            passed.set()
            if self._last.get(recipient) is passed:
                del self._last[recipient]
