"""The raw exchanges with language models, beside the trace: `exchanges.jsonl`.

One JSON object a line for each request, in the order in which they were over; nothing in the trace
refers to it, and it may be deleted. Secrets are masked before it is written; what agents wrote to
each other is not, so it is for its owner only, as all files of a run are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from dig.errors import StopRunError

from .files import MODE, cannot

EXCHANGES = "exchanges.jsonl"


class Asked(Protocol):
    """What is asked, and tells of it: a `dig.runtime.llm.Model`."""

    keep: Callable[[dict[str, Any]], None]


@contextmanager
def exchanges(models: Sequence[Asked], directory: Path) -> Iterator[None]:
    """Keep what models are asked and what they answer, for as long as the block lasts.

    Raises:
        JournalError: The file cannot be made.
    """
    if not models:
        yield
        return
    path = directory / EXCHANGES
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, MODE)
    except OSError as error:
        raise cannot("make", path, error) from None

    def keep(exchange: dict[str, Any]) -> None:
        line = memoryview(json.dumps(exchange).encode() + b"\n")
        try:
            while line:
                line = line[os.write(file, line) :]
        except OSError as error:
            raise StopRunError(str(cannot("write", path, error))) from None

    for model in models:
        model.keep = keep
    try:
        yield
    finally:
        os.close(file)
