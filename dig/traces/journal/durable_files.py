"""Files: written whole or not at all; files of a run are for the owner only.

Files, and the directories made for them, are synced on request.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from dig.errors import JournalError

DiskFull = Literal["stop", "continue"]
"""The reaction to a full disk: `stop` the run, or `continue` it without the file."""

MODE = 0o600


def write_file(path: Path, data: bytes, *, synced: bool = False, mode: int = MODE) -> None:
    """Write a file, whole or not at all.

    Args:
        path: The path of the file.
        data: Its content.
        synced: Whether to block until it is on the disk, with its name; by default not.
        mode: Its permissions, before the umask; by default, for the owner only.

    Raises:
        OSError: The file cannot be written.
    """
    # In the same folder, since a rename between file systems is a copy.
    # A random name cannot be a planted link to a foreign file, nor the name of another writer.
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
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
    """Write an output to a path of the user's choice: a file, a device or a pipe.

    If writing fails, an existing file stays as it was. Its permissions are those of the existing
    file, or those of the umask.

    Raises:
        OSError: The file cannot be written.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        target = path.resolve()  # a link is followed
        before = target.stat().st_mode & 0o777 if target.exists() else None
        write_file(target, data, mode=0o666 if before is None else before)
        if before is not None:
            target.chmod(before)  # with what the umask took


def make_directory(path: Path, *, synced: bool = False) -> None:
    """Make a new directory for the owner only, and missing directories above.

    Args:
        path: The path of the directory; it must not exist.
        synced: Whether to block until their names are on the disk.

    Raises:
        OSError: The directory cannot be made.
    """
    # Each name stands in the folder above, which is what has to be synced.
    missing = [folder for folder in path.parents if not folder.exists()]
    path.mkdir(parents=True, mode=0o700)
    if synced:
        for folder in (path, *missing):
            sync_file(folder.parent)


def sync_file(path: Path, sync: Callable[[int], None] | None = None) -> None:
    """Block until a file or directory is on the disk.

    Args:
        path: The path.
        sync: Syncs an open file descriptor; by default `os.fsync`.

    Raises:
        OSError: The disk has failed.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        (sync or os.fsync)(file)
    finally:
        os.close(file)


def mark(path: Path) -> None:
    """Make an empty file; mostly possible even on a full disk.

    Raises:
        JournalError: The file cannot be made.
    """
    with journal_errors("make", path):
        # Without `O_EXCL`: the mark may be there already.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, MODE))


def is_full(error: OSError) -> bool:
    """Whether an error means a full disk."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_gone(error: OSError) -> bool:
    """Whether an error means a missing file or folder."""
    return isinstance(error, FileNotFoundError | NotADirectoryError)


def cannot(verb: str, path: Path, error: OSError) -> JournalError:
    """The error for an action on a file.

    Args:
        verb: The action: `write`.
        path: The file.
        error: The reason.
    """
    return JournalError(f"cannot {verb} {path}: {error.strerror or error}")


@contextmanager
def journal_errors(verb: str, path: Path) -> Iterator[None]:
    """Raise an OSError of the block as a JournalError: `cannot VERB PATH: reason`."""
    try:
        yield
    except OSError as error:
        raise cannot(verb, path, error) from None
