"""After a crash: the end of a journal that is no whole record is set aside, and reported.

What a crash leaves is a torn tail: part of a line, without its newline. It is moved to a file
beside the trace, so nothing is lost and the trace is what a reader wants. Damage in the middle is
not touched unless that is asked for (`salvage`); then all from the damaged line on is moved.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dig.errors import RecordError, TraceError

from .chain import Chain, is_journal
from .files import MODE, cannot, sync_file
from .locking import is_abandoned, is_being_written
from .reader import MOST_BYTES, parse_row, trace_path


@dataclass(frozen=True)
class SetAside:
    """What was moved out of a journal.

    Attributes:
        path: The journal.
        file: Where it is now.
        bytes: How much it is.
        line: The damaged line with which it begins; ``None`` for a torn tail.
        records: How many records the journal has now.
    """

    path: Path
    file: Path
    bytes: int
    line: int | None
    records: int

    def __str__(self) -> str:
        """In a sentence."""
        what = "a torn last record" if self.line is None else f"line {self.line} and what follows"
        return (
            f"{self.path}: {what} ({self.bytes} bytes) was set aside in {self.file.name}; "
            f"{self.records} whole records are left"
        )


def recover(path: Path, *, salvage: bool = False) -> SetAside | None:
    """Move what is no whole record out of a journal; ``None`` if there is nothing to move.

    A plain trace, and a journal that is still being written, are left alone.

    Args:
        path: The journal or its run directory.
        salvage: Give up what follows a damaged line, too.

    Raises:
        TraceError: Not even the first line is whole.
        JournalError: It cannot be moved.
    """
    path = trace_path(path)
    try:
        if not _needs_care(path, salvage) or is_being_written(path):
            return None
        end, records, line = _whole(path)
        left = path.stat().st_size - end
    except OSError:
        return None  # whoever reads it will say what is wrong with it
    if not left or (line is not None and not salvage):
        return None
    if line is not None and not records:
        raise TraceError(path, line, "there is nothing to salvage: the first line is damaged")
    return SetAside(path, _move(path, end), left, line, records)


def is_cut_off(path: Path) -> bool:
    """Whether a trace without an end gets no more records: a journal that nobody writes.

    Of a plain trace nobody can tell.
    """
    path = trace_path(path)
    try:
        with path.open("rb") as file:
            first = parse_row(file.readline(MOST_BYTES + 1))
    except (OSError, RecordError):
        return False
    return is_journal(first) and is_abandoned(path)


def _needs_care(path: Path, salvage: bool) -> bool:
    """Whether it is a journal, and does not end with the end of a line (or may be damaged)."""
    with path.open("rb") as file:
        try:
            first = parse_row(file.readline(MOST_BYTES + 1))
        except RecordError:
            return False
        file.seek(-1, os.SEEK_END)
        return is_journal(first) and (salvage or file.read(1) != b"\n")


def _whole(path: Path) -> tuple[int, int, int | None]:
    """The length of the longest valid prefix, its records, and the line that is damaged."""
    chain, end, records = Chain(), 0, 0
    with path.open("rb") as file:
        while text := file.readline(MOST_BYTES + 1):
            if not text.endswith(b"\n") and len(text) <= MOST_BYTES:
                break
            if not chain.fits(text):
                return end, records, records + 1
            end += len(text)
            records += 1
    return end, records, None


def _move(path: Path, end: int) -> Path:
    """Move all from a byte on to a new file; a crash in between leaves it in both."""
    number = 0
    while True:
        suffix = f".torn{f'.{number}' if number else ''}"
        aside = path.with_name(path.name + suffix)
        try:
            copy = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
            break
        except FileExistsError:
            number += 1
        except OSError as error:
            raise cannot("make", aside, error) from None
    try:
        with path.open("r+b") as file, open(copy, "wb") as torn:
            file.seek(end)
            while part := file.read(1 << 20):
                torn.write(part)
            torn.flush()
            os.fsync(torn.fileno())
            file.truncate(end)
        sync_file(path)
    except OSError as error:
        raise cannot("write", path, error) from None
    return aside
