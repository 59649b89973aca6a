"""Who keeps time on the bus: ticks the monitor at its next deadline, and sleeps until then."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.lowlevel

from dig.monitor import Monitor
from dig.records import micros


class Alarm:
    """One task that sleeps until the monitor's next deadline, or until that moves."""

    def __init__(
        self,
        monitor: Monitor,
        clock: Callable[[], float],
        speed: float,
        tick: Callable[[], None],
    ) -> None:
        """Begin without a deadline.

        Args:
            monitor: Knows the deadlines.
            clock: The run's clock, in seconds.
            speed: How many times faster than real time that clock goes.
            tick: Ticks the monitor and carries out what follows.
        """
        self._monitor = monitor
        self._clock = clock
        self._speed = speed
        self._tick = tick
        self._due: float | None = None
        self._moved = anyio.Event()

    async def keep(self) -> None:
        """Tick at each deadline, for ever; this is a task of the bus."""
        while True:
            self._moved = anyio.Event()
            due = self._due = self._monitor.next_deadline()
            if due is None:
                await self._moved.wait()
                continue
            with anyio.move_on_after((due - self._clock()) / self._speed):
                await self._moved.wait()
            if micros(due) <= micros(self._clock()):  # as the monitor compares
                self._tick()
                await anyio.lowlevel.checkpoint()

    def set(self) -> None:
        """Wake up, if there is something to do before the alarm that is set.

        A deadline that moves on, as most do with every record, lets the old alarm go off for
        nothing; that costs less than waking somebody each time.
        """
        due = self._monitor.next_deadline()
        if due is not None and (self._due is None or due < self._due):
            self._moved.set()
