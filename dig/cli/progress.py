"""How far long work has come, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int], None]
"""Is told what is being done, how many of it are done, and how many there are."""


@contextmanager
def counting() -> Iterator[Tell]:
    """A bar for each sort of thing on a terminal, else a line for each tenth of the way."""
    if not sys.stderr.isatty():
        yield _by_lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), text, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=None)
            bar.update(tasks[what], completed=done, total=total)

        yield tell


def _by_lines() -> Tell:
    told: dict[str, int] = {}

    def tell(what: str, done: int, total: int) -> None:
        tenths = 10 * done // total if total else -1
        if tenths > told.get(what, -1):
            told[what] = tenths
            print(f"{done} of {total} {what}", file=sys.stderr, flush=True)

    return tell
