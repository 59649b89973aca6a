"""Gates that keep much, and change nothing that a host would see."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import anyio

from dig import Hold, Inject
from dig.detectors import standard
from dig.runtime.host import Setup


class Usher:
    """A gate that keeps every message for no time, and puts notes beside it."""

    name = "usher"

    def __init__(self, *notes: str) -> None:
        self.notes = notes

    def hold(self, monitored: Any, event: Any) -> Hold | None:
        return None if event.type == "notice" else Hold(60.0)

    async def decide(self, event: Any) -> Iterable[Inject]:
        return [Inject(event.id, note) for note in self.notes]


class Hanging(Usher):
    """A gate that keeps answers, and never decides."""

    def hold(self, monitored: Any, event: Any) -> Hold | None:
        return Hold(60.0) if event.final else None

    async def decide(self, event: Any) -> Iterable[Inject]:
        await anyio.sleep_forever()
        return ()


def behind(gate: Usher) -> Callable[[], Setup]:
    """What makes a setup in which nothing but a gate intervenes."""
    return lambda: Setup(detectors=standard, healers=dict, gates=[gate])
