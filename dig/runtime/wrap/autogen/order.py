"""Waiting for what is held, in order for each recipient."""

from __future__ import annotations

from collections.abc import Hashable

import anyio

from .taps import Teller


class InOrder:
    """Who waits for whom; where nothing is held, nobody waits."""

    def __init__(self, teller: Teller) -> None:
        """Begin with nobody waiting."""
        self._teller = teller
        self._last: dict[Hashable, anyio.Event] = {}  # by recipient: the last one in its queue

    async def released(self, recipient: Hashable, event: str) -> None:
        """Wait while an event is held, and behind those for the same recipient that are."""
        before = self._last.get(recipient)
        is_held = self._teller.step(self._teller.session.is_held, event, otherwise=False)
        if before is None and not is_held:
            return
        mine = self._last[recipient] = anyio.Event()
        try:
            if before is not None:
                await before.wait()
            await self._teller.released(event)
        finally:
            mine.set()
            if self._last.get(recipient) is mine:
                del self._last[recipient]
