"""Server-sent events: a run, record by record, for a page that may have missed some."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dig.show.page.about import head

from .following import Follower

TYPE = "text/event-stream; charset=utf-8"

LOOK_S = 0.1
"""Seconds between two looks at the file."""

SETTLE = 10
HEARTBEAT = 100
"""After so many looks without news: is the run over? A comment, which shows if the reader is."""

RETRY_MS = 500


def stream(path: Path, after: int, wait: Callable[[float], bool]) -> Iterator[bytes]:
    """The events of a run: its head, its rows in batches, and when nothing more comes its end.

    The id of a batch is the number of its last record, which a browser that reconnects names as
    `Last-Event-ID`.

    Args:
        path: The trace file or run directory.
        after: The last record that the reader has; -1: none.
        wait: Waits so many seconds, and says whether the server closes.
    """
    follower = Follower(path, after)
    yield f"retry: {RETRY_MS}\n\n".encode()
    yield _head(path, follower)
    quiet, is_last_look, is_closing = 0, False, False
    while True:
        for batch in follower.news():
            quiet = 0
            yield _event(batch.rows, f"id: {batch.last}\n")
        if is_last_look or follower.state != "in progress":
            break
        if is_closing:
            return
        quiet += 1
        is_last_look = quiet % SETTLE == 0 and follower.settle()
        if quiet % HEARTBEAT == 0:
            yield b":\n\n"
        is_closing = not is_last_look and wait(LOOK_S)
    yield _head(path, follower)
    yield _event(None, "event: end\n")


def _head(path: Path, follower: Follower) -> bytes:
    told = {**head(path), "state": follower.state, "problem": follower.problem}
    return _event(told, "event: head\n")


def _event(data: Any, field: str) -> bytes:
    """One event; its data are ASCII on one line, so nothing in them can end it."""
    return f"{field}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode("ascii")
