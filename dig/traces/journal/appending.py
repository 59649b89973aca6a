"""Appending to the files of a journal: whole lines, from file to file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from dig.errors import JournalError, SettingsError

from .durable_files import MODE, is_gone
from .locking import lock
from .segments import segment_path, segments

Write = Callable[[int, memoryview], int]
"""Writes some bytes to a file descriptor, and returns how many."""


def check_size(most_bytes: int | None) -> None:
    """Check the size limit of segments.

    Raises:
        SettingsError: No file is so small.
    """
    if most_bytes is not None and (type(most_bytes) is not int or most_bytes < 1):
        raise SettingsError(f"no file has at most {most_bytes!r:.60} bytes; `None`: no limit")


class Appending:
    """The segments of one journal, open for writing.

    The first file stays open as long as any is written: its lock is that of the whole journal.

    Attributes:
        path: The first file.
        current: The one that is written to.
        full: The files that are complete and not synced yet; `Journal` removes them.
        folder: Where they are, wherever the program goes to.
        damage: The damage done by another program to a file before it was full; ``None``: none.
    """

    def __init__(
        self, path: Path, most_bytes: int | None, write: Write, *, is_new: bool = True
    ) -> None:
        """Make the first file, or open the files that are there.

        Args:
            path: The path of the first file.
            most_bytes: The largest size of a file; a longer line has a file of its own. ``None``:
                no limit.
            write: Writes bytes to a file descriptor, and returns how many.
            is_new: Whether the file is made; if not, the last file goes on.

        Raises:
            OSError: The file cannot be made, or opened.
            JournalError: The file is locked by another process, or a later segment exists already.
            SettingsError: No file is so small.
        """
        check_size(most_bytes)
        if is_new and (later := segment_path(path, 2)).exists():
            raise JournalError(f"cannot make {path}: {later.name} is there, and goes on after it")
        self.path = self.current = path
        self.full: deque[Path] = deque()
        self.folder = path.parent.absolute()
        self.damage: str | None = None
        self._most_bytes = most_bytes
        self._put = write
        self._number = 1
        self._bytes = 0  # of whole lines in the current file
        # Locked until the journal is closed, so the first file stays open.
        self._first = self._file = _new(path) if is_new else _open(path)
        if not lock(self._first):
            os.close(self._first)
            raise JournalError(f"cannot write {path}: another process has locked it")
        if not is_new:
            self._number, self.current = list(enumerate(segments(path), 1))[-1]
            if self._number > 1:
                self._file = _open(self.current)
            self._bytes = os.fstat(self._file).st_size

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines; a line without room in the current file begins the next file.

        Raises:
            OSError: The lines cannot be written; then no part of those that were to stand in the
                current file is left in it, if possible.
        """
        # Lines that fit into a file go there in one write: a call of the system each is slow.
        data = b"".join(lines)
        if not self._most_bytes or self._bytes + len(data) <= self._most_bytes:
            return self._write(data)
        first = size = 0
        for i, line in enumerate(lines):
            if 0 < self._bytes + size > self._most_bytes - len(line):
                self._write(b"".join(lines[first:i]))
                self._go_on()
                first, size = i, 0
            size += len(line)
        self._write(b"".join(lines[first:]))

    def _write(self, data: bytes) -> None:
        try:
            unwritten = memoryview(data)
            while unwritten:  # a write may be cut short, by a signal or a disk that is almost full
                unwritten = unwritten[self._put(self._file, unwritten) :]
        except OSError:
            with suppress(OSError):  # if that fails too, it is a torn tail
                os.ftruncate(self._file, self._bytes)
            raise
        self._bytes += len(data)

    def look(self) -> None:
        """Look whether the current file is unchanged; sets `damage`."""
        ours = os.fstat(self._file)
        try:
            is_there = os.path.samestat(ours, os.stat(self.folder / self.current.name))
        except OSError as error:  # it may be that this process may not look any more
            is_there = not is_gone(error)
        if not is_there:
            self.damage = f"{self.current} was {'moved' if ours.st_nlink else 'removed'}"
        elif ours.st_size != self._bytes:
            self.damage = f"{self.current} was cut, or written to by somebody else,"

    def close(self) -> None:
        """Close the files and release the lock; a second call does nothing."""
        for file in {self._file, self._first} - {-1}:
            os.close(file)
        self._file = self._first = -1

    def _go_on(self) -> None:
        """Begin the next file; after an error nothing has changed."""
        self.look()
        path = segment_path(self.path, self._number + 1)
        file = _new(path)
        if self._file != self._first:
            # The lock of the first file goes with its descriptor, so only later ones are closed.
            os.close(self._file)
        self.full.append(self.current)  # before it is another: a thread may be syncing
        self.current, self._file = path, file
        self._number += 1
        self._bytes = 0


def _open(path: Path) -> int:
    # A link may lead to any file, and nothing is added to that.
    return os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0))


def _new(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, MODE)
