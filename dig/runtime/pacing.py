"""The parts of the bus that wait: the task that keeps time, the pause while a reviewer reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import anyio
import anyio.lowlevel

from dig.graph.records import micros
from dig.monitor.monitor import Monitor

from .observers import AgentTask
from .reviewer import Reviewer


class DeadlineTimer:
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

    async def run(self) -> None:
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
        """Wake the task up, if something is due before the moment that it sleeps until.

        A deadline that moves on, as most do with every record, lets the task wake up for nothing
        at the old moment; that costs less than waking it each time.
        """
        due = self._monitor.next_deadline()
        if due is not None and (self._due is None or due < self._due):
            self._moved.set()


class Pause:
    """Keeps the team from starting anything while its reviewer reads."""

    def __init__(
        self,
        reviewer: Reviewer | None,
        monitor: Monitor,
        agents: Mapping[str, AgentTask],
        join: Callable[[str], None],
        leave: Callable[[str], None],
    ) -> None:
        """Begin without a waiting agent.

        Args:
            reviewer: The member of the team that reads along; ``None``: no agent ever waits.
            monitor: Knows what has happened in the run.
            agents: By the name of an agent that is present: its mailbox.
            join: Has the agent of this name come.
            leave: Has the agent of this name go.
        """
        self._reviewer = reviewer
        self._monitor = monitor
        self._agents = agents
        self._join = join
        self._leave = leave
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
            self._join(reviewer.name)
        if step in ("come", "start"):
            self._agents[reviewer.name].mail.set()
        elif step == "go":
            self._leave(reviewer.name)
            self._over.set()
            self._over = anyio.Event()
