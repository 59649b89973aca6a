"""Files: written whole or not at all; those of a run are readable by their owner only.

They, and the directories made for them, are synced for whoever asks for it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

from dig.errors import JournalError

DiskFull = Literal["stop", "continue"]
"""What happens when something does not fit on the disk."""

MODE = 0o600

MOST_BYTES = 64 * 1024 * 1024
"""How long a file beside a trace may be: far longer than any that was written."""

_NO_WAITING = getattr(os, "O_NONBLOCK", 0)


def open_file(path: Path) -> BinaryIO:
    """Open a file to read it, whatever somebody else may have put in its place.

    Raises:
        OSError: It cannot be opened, or is no file: a pipe is not waited for.
    """
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115 (the caller closes it)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no file", str(path))
    return file


def read_file(path: Path) -> bytes:
    """What is in a file that lies beside a trace, or that is as small as those are.

    Raises:
        OSError: It cannot be read, is no file, or is longer than `MOST_BYTES`.
    """
    with open_file(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is longer than {MOST_BYTES} bytes", str(path))
    return data


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | _NO_WAITING)


def write_file(path: Path, data: bytes, *, synced: bool = False, mode: int = MODE) -> None:
    """Write a file, whole or not at all.

    Args:
        path: Where.
        data: What is to stand in it.
        synced: Whether to block until it is on the disk, with its name.
        mode: Who may read and write it, as far as the umask lets them.

    Raises:
        OSError: It cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        part.unlink(missing_ok=True)  # it may be a link, to what is not ours to write
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)  # on a full disk, it would take the room that is left
        raise
    if synced:
        sync_file(path.parent)


def write_output(path: Path, data: bytes) -> None:
    """Write what somebody wants in a place that they name: a file, which stays as it was if that
    fails, or a device or a pipe. Who may read it is up to the umask, or to what was there.

    Raises:
        OSError: It cannot be written.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        there = path.resolve()  # somebody's own link is followed
        before = there.stat().st_mode & 0o777 if there.exists() else None
        write_file(there, data, mode=0o666 if before is None else before)
        if before is not None:
            there.chmod(before)  # with what the umask took


def make_directory(path: Path, *, synced: bool = False) -> None:
    """Make a new directory, for its owner only, and those above it that are missing.

    Args:
        path: Where; nothing may be there.
        synced: Whether to block until their names are on the disk.

    Raises:
        OSError: It cannot be made.
    """
    missing = [folder for folder in path.parents if not folder.exists()]
    path.mkdir(parents=True, mode=0o700)
    if synced:
        for folder in (path, *missing):
            sync_file(folder.parent)


def sync_file(path: Path, sync: Callable[[int], None] | None = None) -> None:
    """Block until a file or directory is on the disk.

    Args:
        path: Which.
        sync: What does it, to an open file; `os.fsync`, if it is left out.

    Raises:
        OSError: The disk has failed.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        (sync or os.fsync)(file)
    finally:
        os.close(file)


def mark(path: Path) -> None:
    """Make an empty file; it needs no room for data, so it mostly can be made on a full disk.

    Raises:
        JournalError: It cannot be made.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, MODE))
    except OSError as error:
        raise cannot("make", path, error) from None


def is_full(error: OSError) -> bool:
    """Whether an error says that there is no room left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def cannot(what: str, path: Path, error: OSError) -> JournalError:
    """The error that says what could not be done to a file."""
    return JournalError(f"cannot {what} {path}: {error.strerror or error}")
