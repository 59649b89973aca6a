"""The records of a trace, left in the files until somebody asks for a record."""

from __future__ import annotations

import weakref
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import BinaryIO, overload

from dig._util.files import open_file
from dig._util.json_text import parse_row
from dig.errors import RecordError, TraceError
from dig.graph.records import Record

from .reader import Line, record_of

LATEST = 256
"""The number of records that are kept, since a walk asks for the same ones several times."""


class StoredRecords(Sequence[Record]):
    """The records of a checked trace, each read again on demand.

    Only the place of each line is in memory, so a run of any size costs little. A file that is
    written on meanwhile changes nothing: lines are only appended.
    """

    def __init__(self) -> None:
        """Start without a line."""
        self._places = array("q")  # of each line: the first byte
        self._firsts: list[int] = []  # of each file: the number of its first record
        self._paths: list[Path] = []
        self._files: list[BinaryIO] = []
        self._lock = Lock()  # experiments read the same run in several threads
        self._latest = lru_cache(LATEST)(self._read)
        weakref.finalize(self, _close, self._files)

    def add(self, line: Line) -> None:
        """Add the latest line."""
        if not self._paths or self._paths[-1] != line.file:
            self._firsts.append(len(self._places))
            self._paths.append(line.file)
            self._files.append(open_file(line.file))
        self._places.append(line.at)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, t: int) -> Record: ...
    @overload
    def __getitem__(self, t: slice) -> list[Record]: ...
    def __getitem__(self, t: int | slice) -> Record | list[Record]:
        if isinstance(t, slice):
            return [*map(self._read, range(len(self))[t])]
        return self._latest(range(len(self))[t])

    def __iter__(self) -> Iterator[Record]:
        return map(self._read, range(len(self)))

    def _read(self, t: int) -> Record:
        """Read a record again.

        Raises:
            TraceError: The file has changed.
        """
        n = bisect_right(self._firsts, t) - 1
        with self._lock:
            self._files[n].seek(self._places[t])
            text = self._files[n].readline()
        number = t - self._firsts[n] + 1
        try:
            record = record_of(Line(text, parse_row(text), self._paths[n], number, self._places[t]))
        except RecordError:
            record = None
        if record is None or record.t != t:
            raise TraceError(self._paths[n], number, "has changed since it was read")
        return record


def _close(files: list[BinaryIO]) -> None:
    for file in files:
        file.close()
