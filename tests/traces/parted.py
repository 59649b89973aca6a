"""Traces in several files, and whole ones cut into such."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from dig.traces.journal.reader import TRACE
from dig.traces.journal.segments import segment_path, segments
from tests.traces.journals import journalled, simple_run

LONG = 29
"""The seed of a run of more than a hundred records."""

EACH = 1
"""Bytes of a segment that has room for a single line."""


def files(path: Path) -> list[Path]:
    """The files of a trace."""
    return list(segments(path))


def whole(path: Path) -> bytes:
    """The files of a trace, one after the other."""
    return b"".join(file.read_bytes() for file in segments(path))


@cache
def long() -> bytes:
    """The journal of a simulated run of which everything is recorded."""
    with TemporaryDirectory() as folder:
        return journalled(simple_run(LONG), Path(folder)).read_bytes()


def parted(data: bytes, folder: Path, size: int) -> Path:
    """A trace as it would have been written in segments of a size."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [b""]
    for line in data.splitlines(keepends=True):
        if parts[-1] and len(parts[-1]) + len(line) > size:
            parts.append(b"")
        parts[-1] += line
    for number, part in enumerate(parts, 1):
        segment_path(folder / TRACE, number).write_bytes(part)
    return folder / TRACE


Spoil = Callable[[list[Path], int], tuple[int, int | None]]
"""Damages a trace at its segment of a number; says which file and line is to be told."""


def remove(paths: list[Path], at: int) -> tuple[int, int | None]:
    paths[at].unlink()
    return at, None


def shorten(paths: list[Path], at: int) -> tuple[int, int | None]:
    lines = paths[at].read_bytes().splitlines(keepends=True)
    paths[at].write_bytes(b"".join(lines[:-1]))
    return at + 1, 1


def tear(paths: list[Path], at: int) -> tuple[int, int | None]:
    data = paths[at].read_bytes()
    paths[at].write_bytes(data[:-5])
    return at, data.count(b"\n")


def swap(paths: list[Path], at: int) -> tuple[int, int | None]:
    one, other = paths[at].read_bytes(), paths[at + 1].read_bytes()
    paths[at].write_bytes(other)
    paths[at + 1].write_bytes(one)
    return at, 1


def double(paths: list[Path], at: int) -> tuple[int, int | None]:
    for path in reversed(paths[at + 1 :]):
        path.rename(segment_path(paths[0], paths.index(path) + 2))
    shutil.copy(paths[at], segment_path(paths[0], at + 2))
    return at + 1, 1


def empty(paths: list[Path], at: int) -> tuple[int, int | None]:
    paths[at].write_bytes(b"")
    return at + 1, 1


SPOILS: tuple[Spoil, ...] = (remove, shorten, tear, swap, double, empty)
