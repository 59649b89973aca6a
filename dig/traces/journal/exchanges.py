"""The raw exchanges with language models, beside the trace: `exchanges.jsonl`.

One JSON object a line for each request, in the order in which they were over; nothing in the trace
refers to it, and it may be deleted. Secrets are masked before it is written; the texts of agents
are not, so only its owner may read it, like all files of a run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from dig.errors import JournalError, StopRunError

from .appending import Appending
from .durable_files import DiskFull, cannot, is_full, journal_errors, mark

EXCHANGES = "exchanges.jsonl"
INCOMPLETE = ".incomplete"


class AskedModel(Protocol):
    """A model with reported exchanges: a `dig.runtime.llm.Model`."""

    keep: Callable[[dict[str, Any]], None]


@contextmanager
def exchanges(
    models: Sequence[AskedModel], directory: Path, *, disk_full: DiskFull = "stop"
) -> Iterator[None]:
    """Record the requests to models, and the answers, in a block.

    Args:
        models: The models; if there are none, no file is made.
        directory: The run directory in which the file is made; in a run that goes on, it is there.
        disk_full: Whether the run goes on when there is no room for an exchange. Then none is
            kept from there on, and an empty file `exchanges.jsonl.incomplete` says so.

    Raises:
        JournalError: The file cannot be made.
    """
    if not models:
        yield
        return
    path = directory / EXCHANGES
    with journal_errors("make", path):
        file = Appending(path, None, os.write, is_new=not path.exists())
    keep = _ExchangeWriter(file, disk_full)
    for model in models:
        model.keep = keep
    try:
        yield
    finally:
        file.close()


def are_incomplete(directory: Path) -> bool:
    """Whether there was no room for some exchange of a run."""
    return (directory / f"{EXCHANGES}{INCOMPLETE}").exists()


class _ExchangeWriter:
    """Writes exchanges to the file, until the disk is full."""

    def __init__(self, file: Appending, disk_full: DiskFull) -> None:
        self._file = file
        self._disk_full = disk_full
        self._is_full = False

    def __call__(self, exchange: dict[str, Any]) -> None:
        # After a gap nothing more is kept, so that the file is complete up to its end.
        if self._is_full:
            return
        path = self._file.path
        try:
            self._file.append([json.dumps(exchange).encode() + b"\n"])
        except OSError as error:
            if self._disk_full == "stop" or not is_full(error):
                raise StopRunError(str(cannot("write", path, error))) from None
            try:
                mark(path.with_name(path.name + INCOMPLETE))
            except JournalError as wrong:
                raise StopRunError(str(wrong)) from None
            self._is_full = True
