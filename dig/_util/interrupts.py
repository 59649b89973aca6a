"""Interrupts (Ctrl-C, SIGTERM) between two steps of work."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM until the end of the block; a new process inherits the mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
