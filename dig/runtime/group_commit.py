"""Group commit: effects wait until the records before them are on the disk.

A record is written before the monitor's call returns, and what follows from the call waits here,
first in, first out, while a worker thread syncs the journal. One sync serves all that came in
before it. The monitor's call stays synchronous, and the loop's thread never syncs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

import anyio
import anyio.to_thread

from dig.monitor.messages import Answered, Asked, Effect, Over, Proposed, Started, Wake

Durability = Literal["process", "effects", "power"]


class Durable(Protocol):
    """A sink with a sync."""

    @property
    def durability(self) -> Durability:
        """The effects that need a sync of the data before them.

        `process`: nothing. `effects`: what led to a call of an agent or a gate, and an answer.
        `power`: what led to a delivery, too.
        """
        ...

    def sync(self) -> None:
        """Block until everything written so far is on the disk; called in a worker thread."""
        ...


def waits(level: Durability, effects: Iterable[Effect]) -> bool:
    """Whether one of some effects must wait for a sync."""
    kinds = _WAITING[level]
    return any(isinstance(effect, kinds) for effect in effects)


# The others only tell what has happened.
_OUTSIDE = (Started, Asked, Proposed, Answered, Over)
_WAITING: dict[Durability, tuple[type[Effect], ...]] = {
    "process": (),
    "effects": _OUTSIDE,
    "power": (*_OUTSIDE, Wake),
}


class GroupCommit:
    """The queue of effects that wait for the disk, in one run on the bus."""

    def __init__(
        self,
        durable: Durable,
        carry_out: Callable[[Sequence[Effect]], None],
        fail: Callable[[Exception], None],
    ) -> None:
        """Begin with nothing waiting.

        Args:
            durable: The sink that is synced, at another level than `process`.
            carry_out: Carries out effects.
            fail: Is called if the disk has failed; nothing takes effect after that.
        """
        self._durable = durable
        self._carry_out = carry_out
        self._fail = fail
        self._waiting: deque[Callable[[], None]] = deque()
        self._more = anyio.Event()

    @classmethod
    def of(
        cls,
        durable: Durable | None,
        carry_out: Callable[[Sequence[Effect]], None],
        fail: Callable[[Exception], None],
    ) -> GroupCommit | None:
        """Make a queue, if effects have to wait at all."""
        if durable is None or durable.durability == "process":
            return None
        return cls(durable, carry_out, fail)

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Carry effects out as soon as the level of durability allows."""
        level = self._durable.durability
        later = [effect for effect in effects if waits(level, (effect,))]
        self._carry_out([effect for effect in effects if not waits(level, (effect,))])
        if later:
            self._wait(lambda: self._carry_out(later))

    async def barrier(self) -> None:
        """Wait until everything so far may have effects outside."""
        reached = anyio.Event()
        self._wait(reached.set)
        await reached.wait()

    async def run(self) -> None:
        """Sync, and carry out the effects that waited for the sync, for ever; a task of the bus."""
        while True:
            await self._more.wait()
            self._more = anyio.Event()
            while self._waiting:
                # What is added during the sync is not covered by it, and waits for the next one.
                ready = len(self._waiting)
                if not await self._sync():
                    return
                for _ in range(ready):
                    self._waiting.popleft()()

    async def close(self) -> None:
        """Sync for the last time; waiting effects are dropped."""
        # The run may end by cancellation, and its last records must be on the disk all the same.
        with anyio.CancelScope(shield=True):
            await self._sync()

    def _wait(self, action: Callable[[], None]) -> None:
        self._waiting.append(action)
        self._more.set()

    async def _sync(self) -> bool:
        try:
            await anyio.to_thread.run_sync(self._durable.sync)
        except Exception as error:  # the disk has failed: no effect may happen any more
            self._fail(error)
            return False
        return True
