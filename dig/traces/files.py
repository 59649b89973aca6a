"""Files of a run: written whole or not at all, synced, readable by their owner only."""

from __future__ import annotations

import os
from pathlib import Path

from dig.errors import JournalError

MODE = 0o600


def write_file(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE), "wb") as file:
        file.write(data)
    part.replace(path)


def sync_file(path: Path) -> None:
    """Block until a file or directory is on the disk.

    Raises:
        OSError: The disk has failed.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def cannot(what: str, path: Path, error: OSError) -> JournalError:
    """The error that says what could not be done to a file."""
    return JournalError(f"cannot {what} {path}: {error.strerror or error}")
