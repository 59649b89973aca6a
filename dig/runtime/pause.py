"""Keeps a team on the bus from starting anything while its reviewer reads."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from dig.monitor import Monitor

from .agents import Agent
from .desk import Desk
from .reviewer import Reviewer

if TYPE_CHECKING:
    from .bus import Bus


class Pause:
    """The bus's side of a reviewer: when it comes, when it goes, and who waits for it."""

    def __init__(
        self,
        reviewer: Reviewer | None,
        bus: Bus,
        monitor: Monitor,
        team: Mapping[str, Agent],
        desks: Mapping[str, Desk],
    ) -> None:
        """Begin with nobody waiting; without a reviewer nobody ever does."""
        self._reviewer = reviewer
        self._bus = bus
        self._monitor = monitor
        self._team = team
        self._desks = desks
        self._over = anyio.Event()

    async def wait(self, agent: str) -> None:
        """Wait until an agent may be started."""
        reviewer = self._reviewer
        if reviewer is not None and agent != reviewer.name:
            while reviewer.is_reading(self._monitor.graph):
                await self._over.wait()

    def look(self) -> None:
        """After an activation has ended: have the reviewer come, or go, if it is time."""
        if self._reviewer is not None and not self._monitor.is_over:
            # A journal that fails has ended the run already, and the bus tells of it.
            with suppress(Exception):
                self._step(self._reviewer)

    def _step(self, reviewer: Reviewer) -> None:
        step = reviewer.next_step(self._monitor.graph)
        if step == "come":
            self._bus.join(reviewer.name, self._team[reviewer.name])
        if step in ("come", "start"):
            self._desks[reviewer.name].mail.set()
        elif step == "go":
            self._bus.leave(reviewer.name)
            self._over.set()
            self._over = anyio.Event()
