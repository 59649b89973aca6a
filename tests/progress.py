"""The progress of a campaign, and the processes that it is spread over."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

Part = TypeVar("Part")
Seen = TypeVar("Seen")


@contextmanager
def progress(count: int) -> Iterator[Progress]:
    """A bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        bar.add_task("traces", total=count)
        yield bar


def over_processes(
    look: Callable[[Part], Seen], parts: Sequence[Part], jobs: int
) -> Iterator[Seen]:
    """Look at each part, in some processes if `jobs` is above 1."""
    if jobs == 1:
        yield from map(look, parts)
        return
    # Ctrl-C is for the first process, which then ends the others.
    ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with multiprocessing.get_context("spawn").Pool(jobs, ignore) as pool:
        yield from pool.imap_unordered(look, parts)
