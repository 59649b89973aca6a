"""Work over several processes, with results in the order of the items."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Self, TypeVar

from dig._util.interrupts import interrupts_later
from dig.errors import SettingsError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Processes as a context manager; one worker means this process."""

    def __init__(self, jobs: int, what: str = "the work", on_loss: str = "") -> None:
        """Begin; no process is started before there is something to do.

        Args:
            jobs: The number of processes that work at once.
            what: The work's name, for errors.
            on_loss: The advice of the error if a process dies.
        """
        self._jobs, self._what, self._on_loss = jobs, what, on_loss
        self._pool = (
            ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_watch_parent)
            if jobs > 1
            else None
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def each(self, do: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The result of each item, in the order of the items.

        Args:
            do: A function of a module, so that another process can import it.
            items: Its arguments; only a few more are taken than results were asked for.

        Raises:
            SettingsError: A process died.
        """
        if self._pool is None:
            yield from map(do, items)
            return
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                with interrupts_later():  # for good in a process that this starts
                    waiting.append(self._pool.submit(do, item))
                if len(waiting) > 4 * self._jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise SettingsError(
                f"a process of {self._what} died, for want of memory perhaps; {self._on_loss}"
            ) from None
        finally:
            for future in waiting:
                future.cancel()

    def all(
        self, do: Callable[[Item], Result], items: Sequence[Item], tell: Callable[[int], None]
    ) -> list[Result]:
        """The results of all items, in order.

        Args:
            do: A function of a module, so that another process can import it.
            items: Its arguments.
            tell: Takes the number of results so far, after each.

        Raises:
            SettingsError: A process died.
        """
        results: list[Result] = []
        for result in self.each(do, items):
            results.append(result)
            tell(len(results))
        return results


def _watch_parent() -> None:
    """End a new process with its parent.

    A process that a signal ends halfway through its result would leave its parent reading for ever,
    so no signal but that of the parent's end counts.
    """
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
