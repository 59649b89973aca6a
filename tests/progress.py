"""The progress of a campaign."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn


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
