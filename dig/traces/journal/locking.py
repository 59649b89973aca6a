"""One writer a journal: an advisory lock, released by the system with the process."""

from __future__ import annotations

from pathlib import Path

from dig._util.files import open_file

try:
    import fcntl
except ImportError:  # Windows; there a journal is opened once, when it is made
    fcntl = None  # type: ignore[assignment]  # there is nothing to lock with


def lock(file: int, *, shared: bool = False) -> bool:
    """Lock an open file for a writer, or `shared` for readers; return success."""
    if fcntl is None:
        return True
    try:
        # Not `fcntl.lockf`: that would release the lock when any descriptor of the file is closed.
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_being_written(path: Path) -> bool:
    """Whether a process has locked a journal: the run is still going on."""
    with open_file(path) as file:
        return not lock(file.fileno(), shared=True)


def is_abandoned(path: Path) -> bool:
    """Whether certainly no process has locked a journal: a run without an end was cut off."""
    try:
        return fcntl is not None and not is_being_written(path)
    except OSError:
        return False
