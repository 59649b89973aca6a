"""The files of a trace: a long journal goes on in further files.

    trace.dig.jsonl           the first, after which the others are called
    trace.dig.jsonl.000002    goes on where the first one ends
    trace.dig.jsonl.000003

Nothing but the file changes from one *segment* to the next: numbers, chain and payloads go on. So
the files, one after the other, are the trace, byte for byte, and a trace that never grew so long
is the first file alone. Nothing is written to a segment any more once there is a next one.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

from dig._util.files import GZIP, is_there, open_file
from dig._util.text import counted
from dig.errors import TraceError

TRACE = "trace.dig.jsonl"
"""The file of a run directory in which its trace begins."""

SEGMENT_BYTES = 256 * 1024 * 1024
"""The largest size of a trace's file in a run directory: about a million records."""

_LATER = re.compile(r"(.+)\.(\d{6,})", re.DOTALL)


def trace_path(path: Path) -> Path:
    """The trace file of a path: a run directory stands for the trace inside.

    A compressed trace (`NAME.gz`) has the name of the trace in it: `open_file` opens both.
    """
    return path / TRACE if path.is_dir() else path.with_name(path.name.removesuffix(GZIP))


def is_run(path: Path) -> bool:
    """Whether a directory belongs to a run, even without the first segments."""
    return is_there(path / TRACE) or bool(path.is_dir() and later_segments(path / TRACE, 1))


def segment_path(first: Path, number: int) -> Path:
    """The path of a segment, counted from 1, of the trace beginning in a file."""
    return first if number == 1 else first.with_name(f"{first.name}.{number:06}")


def segments(first: Path) -> Iterator[Path]:
    """The files of a trace, in order, up to the first missing file."""
    yield first
    for number in count(2):
        path = segment_path(first, number)
        if not is_there(path):  # it may be a pipe, which would not be read to an end
            return
        yield path


def later_segments(first: Path, number: int) -> list[Path]:
    """The existing segments after a number, in order, even with gaps."""
    names = (name.removesuffix(GZIP) for name in _names(first.parent))
    numbers = {int(match[2]) for name in names if (match := _of(first, name))}
    return [segment_path(first, later) for later in sorted(numbers) if later > number]


def first_segment(path: Path) -> Path | None:
    """The first file of a trace, for the name of a later segment; else ``None``."""
    match = _LATER.fullmatch(path.name)
    return path.with_name(match[1]) if match and _of(path.with_name(match[1]), path.name) else None


def fault(first: Path, number: int, reason: str) -> TraceError:
    """The error about a line of a trace, counted over all files.

    Args:
        first: The first file of the trace.
        number: The line, counted from 1 over all files.
        reason: The text of the error.
    """
    file, line = LineIndex(first).of(number)
    return TraceError(file, line, reason)


class LineIndex:
    """The places of the lines of a trace, counted over all files."""

    def __init__(self, first: Path) -> None:
        """Count the lines of all files but the last.

        Args:
            first: The first file of the trace.
        """
        *self._full, self._last = segments(first)
        self._lines = [0] * len(self._full)
        for number, path in enumerate(self._full):
            with suppress(OSError), open_file(path) as file:
                parts = iter(partial(file.read, 1 << 20), b"")
                self._lines[number] = sum(part.count(b"\n") for part in parts)

    def of(self, number: int) -> tuple[Path, int]:
        """The file of a line, and the number in the file, both counted from 1."""
        for file, lines in zip(self._full, self._lines, strict=True):
            if number <= lines:
                return file, number
            number -= lines
        return self._last, number


def missing(first: Path, number: int = 1, *, whole_records: int = 0) -> TraceError:
    """The error about a missing segment, with the name of the next existing segment.

    Args:
        first: The file in which the trace begins, or should.
        number: The number of the missing segment; by default the first one.
        whole_records: The number of records before it that can be kept.
    """
    path, folder = segment_path(first, number), first.parent
    if later := later_segments(first, number):
        reason = f"is missing: {later[0].name} is there, and goes on after it; put it back"
        if whole_records:
            reason += f" (`digmon verify --salvage` keeps the {whole_records} records before it)"
        return TraceError(path, None, reason)
    # A pipe, a device or a broken link.
    if os.path.lexists(path):
        return TraceError(path, None, "is no file that can be read")
    if first.name != TRACE or not folder.is_dir():
        return TraceError(path, None, f"cannot be read: {os.strerror(errno.ENOENT)}")
    if runs := [folder / name for name in _names(folder) if is_run(folder / name)]:
        of_several = "name one of them (`digmon runs` lists them)"
        cure = of_several if len(runs) > 1 else f"name it, {runs[0]}"
        reason = f"is no run, but a directory of {counted(len(runs), 'run')}: {cure}"
        return TraceError(folder, None, reason)
    return TraceError(folder, None, f"is no run: there is no {TRACE} in it")


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _of(first: Path, name: str) -> re.Match[str] | None:
    """Match the name of a later segment of a trace."""
    match = _LATER.fullmatch(name)
    # NAME.02 or NAME.0000002 are not names that a journal gives.
    is_one = match and int(match[2]) > 1 and name == segment_path(first, int(match[2])).name
    return match if is_one else None
