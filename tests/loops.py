"""Event loops in virtual time on which a seed decides the order of tasks that are ready.

Left alone, asyncio runs ready tasks first in, first out, which hides most mistakes about order;
and anyio keeps tasks and cancel scopes in sets, which are ordered by address. Here what is ready
is shuffled by a seed, and both have hashes that count, so that a schedule comes again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

from anyio._backends import _asyncio

from .helpers import VirtualLoop

ENGINES = ("simulator", "asyncio", "trio")


class _Task(asyncio.Task[Any]):
    """A task whose hash is its number on its loop."""

    def __init__(self, *args: Any, loop: Any, **more: Any) -> None:
        self._number: int = next(loop.numbers)
        super().__init__(*args, loop=loop, **more)

    def __hash__(self) -> int:
        return self._number


class SeededLoop(VirtualLoop):
    """A virtual loop that steps ready tasks in an order that a seed decides."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.numbers = count()
        self._chance = random.Random(seed)
        self.set_task_factory(lambda loop, coro, **more: _Task(coro, loop=loop, **more))

    def _run_once(self) -> None:
        # Only steps of tasks change places: what else is ready keeps its order, as asyncio says.
        ready: Any = self._ready  # type: ignore[attr-defined]
        places = [i for i, handle in enumerate(ready) if _is_step(handle)]
        steps = [ready[i] for i in places]
        self._chance.shuffle(steps)
        for i, handle in zip(places, steps, strict=True):
            ready[i] = handle
        super()._run_once()  # type: ignore[misc]


def _is_step(handle: Any) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)


@contextmanager
def backend(engine: str, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and options of a backend of anyio, seeded, while it is in use."""
    if engine == "asyncio":
        numbers = count()
        hashes: dict[int, int] = {}
        scopes: list[Any] = []  # kept, so that no address is used twice

        def number(scope: Any) -> int:
            if id(scope) not in hashes:
                scopes.append(scope)
                hashes[id(scope)] = next(numbers)
            return hashes[id(scope)]

        with patch.object(_asyncio.CancelScope, "__hash__", number):
            yield "asyncio", {"loop_factory": lambda: SeededLoop(seed)}
        return
    import trio._core._run as run
    from trio.testing import MockClock

    run._r.seed(seed)
    with patch.object(run, "_ALLOW_DETERMINISTIC_SCHEDULING", True):
        yield "trio", {"clock": MockClock(autojump_threshold=0)}
