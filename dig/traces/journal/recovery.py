"""Recovery after a crash: the torn tail of a journal is set aside, and reported.

A crash leaves a torn tail: part of a line, without its newline, at the end of the last
segment. It is moved to a file beside it, so nothing is lost and a reader accepts the trace.
Damage in the middle is not touched unless `salvage` is set; then all from the damaged
line on is moved, later segments as a prefix.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

from dig._util.files import open_file
from dig._util.json_text import MOST_BYTES, parse_row
from dig._util.text import counted
from dig.errors import JournalError, RecordError, TraceError
from dig.graph.chain import Chain, is_journal
from dig.graph.records import Emit, End

from .durable_files import MODE, cannot, journal_errors, sync_file
from .journal import SIDE
from .locking import is_abandoned, is_being_written
from .reader import read_records, trace_path
from .segments import later_segments, segments


@dataclass(frozen=True)
class SetAside:
    """The part moved out of a journal.

    Attributes:
        path: The file from whose end the part was taken, or after which it was.
        files: The files in which it is now, in order.
        line: The damaged line with which it begins, in `path`; ``None``: it begins with none.
        records: The number of records in the journal now.
        what: A description of it, in words.
    """

    path: Path
    files: tuple[Path, ...]
    bytes: int
    line: int | None
    records: int
    what: str

    @property
    def where(self) -> str:
        """The names of the files with the part."""
        further = len(self.files) - 1
        return self.files[0].name + (f" and {counted(further, 'further file')}" if further else "")

    def __str__(self) -> str:
        """The report, as a sentence."""
        return (
            f"{self.path}: {self.what} ({self.bytes} bytes) was set aside in {self.where}; "
            f"{self.records} whole records are left"
        )


def whole_requests(path: Path) -> int:
    """Count the records of whole requests, from which a journal can go on.

    A file has no marks between requests. But what a request brings about follows from its first
    records: a crash loses something for good only among the outputs of an activation, and then its
    end, and what follows, do not count.

    Raises:
        TraceError: The trace cannot be read.
    """
    last = before_end = 0
    missing: set[str] = set()
    for record in read_records(path, payloads=False):
        last = record.t
        if isinstance(record, End):
            missing, before_end = {*record.outputs}, last
        elif isinstance(record, Emit):
            missing.discard(record.event)
    return before_end if missing else last + 1


def recover(path: Path, *, salvage: bool = False, records: int | None = None) -> SetAside | None:
    """Move everything after the last whole record out of a journal.

    Returns ``None`` if there is nothing to move.
    A plain trace, and a journal that is still being written, are left alone.

    Args:
        path: The journal or its run directory.
        salvage: Whether to move all after a damaged line or a missing segment, too.
        records: The most records that stay (`whole_requests`); ``None``: all that are whole.

    Raises:
        TraceError: Not even the first line is whole.
        JournalError: The rest of the file cannot be moved.
    """
    path = trace_path(path)
    try:
        if not _needs_care(path, salvage or records is not None) or is_being_written(path):
            return None
        prefix = _valid_prefix(path, records)
        rest_bytes = prefix.file.stat().st_size - prefix.end
        size = rest_bytes + sum(file.stat().st_size for file in prefix.later)
    except OSError:
        return None  # the reader of the trace reports the error
    # A crash tears the last line of the last file; anything else is damage.
    is_torn = rest_bytes > 0 and not (prefix.is_damaged or prefix.later)
    if not (is_torn or ((salvage or prefix.records == records) and (rest_bytes or prefix.later))):
        return None
    if not prefix.records:
        raise TraceError(path, 1, "there is nothing to salvage: the first line is damaged")
    if prefix.file.is_symlink():  # its target may be any file, so it is not cut
        raise JournalError(f"cannot write {prefix.file}: it is a link; recover the file itself")
    line = prefix.lines + 1 if rest_bytes and not is_torn else None
    part = "a torn last record" if is_torn else "what follows a missing file"
    part = f"line {line} and what follows" if line else part
    part = part if records is None else "an incomplete last request"
    return SetAside(prefix.file, _set_aside(prefix, rest_bytes), size, line, prefix.records, part)


def torn_bytes(path: Path) -> int:
    """The size of a torn line at the end of a journal without a writer."""
    path = trace_path(path)
    try:
        if not _needs_care(path, False) or is_being_written(path):
            return 0
        prefix = _valid_prefix(path)
        return 0 if prefix.is_damaged else prefix.file.stat().st_size - prefix.end
    except OSError:
        return 0  # the reader of the trace reports the error


def is_cut_off(path: Path) -> bool:
    """Whether a trace without an end gets no more records: a journal without a writer.

    Of a plain trace this is unknown, so the result is false. The copy of a session has no end.
    """
    path = trace_path(path)
    try:
        return _is_journal(path) and is_abandoned(path) and not is_pulled(path)
    except OSError:
        return False


def is_pulled(path: Path) -> bool:
    """Whether a trace is a copy of a session on a server, which goes on there."""
    try:
        return "nats" in json.loads((trace_path(path).parent / SIDE).read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def is_own_journal(path: Path) -> bool:
    """Whether a trace was written as a journal; false, too, if it cannot be read."""
    try:
        return _is_journal(trace_path(path))
    except OSError:
        return False


def _is_journal(first: Path) -> bool:
    with open_file(first) as file:
        try:
            return is_journal(parse_row(file.readline(MOST_BYTES + 1)))
        except RecordError:
            return False


def _needs_care(first: Path, salvage: bool) -> bool:
    """Whether a file is a journal without a newline at the end (or, for `salvage`, any)."""
    *_, last = segments(first)
    if salvage:
        return _is_journal(first)
    with open_file(last) as file:
        if not file.seek(0, os.SEEK_END):  # the next segment was made, and nothing written to it
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n" and _is_journal(first)


class _Prefix(NamedTuple):
    """The longest valid prefix of a journal.

    Attributes:
        file: The segment in which it ends.
        end: After how many bytes of it.
        lines: After how many lines of it.
        records: The number of records in the prefix, over all segments.
        is_damaged: Whether a whole line follows, in the same segment, that is damaged.
        later: The segments after that one.
    """

    file: Path
    end: int
    lines: int
    records: int
    is_damaged: bool
    later: list[Path]


def _valid_prefix(first: Path, most: int | None = None) -> _Prefix:
    chain, prefix = Chain(), _Prefix(first, 0, 0, 0, False, [])
    for number, path in enumerate(segments(first), 1):
        left = None if most is None else most - prefix.records
        end, lines, is_damaged = _valid_lines(path, chain, left)
        later = later_segments(first, number)
        prefix = _Prefix(path, end, lines, prefix.records + lines, is_damaged, later)
        if end < path.stat().st_size:
            break
    return prefix


def _valid_lines(path: Path, chain: Chain, most: int | None) -> tuple[int, int, bool]:
    """The bytes and lines of a segment that are whole, and whether a damaged line follows."""
    end = lines = 0
    with open_file(path) as file:
        while lines != most and (text := file.readline(MOST_BYTES + 1)):
            if not text.endswith(b"\n") and len(text) <= MOST_BYTES:
                break
            if not chain.follows(text):
                return end, lines, True
            end += len(text)
            lines += 1
    return end, lines, False


def _set_aside(prefix: _Prefix, size: int) -> tuple[Path, ...]:
    """Move all damaged parts, the last file first: a crash in between can be resumed."""
    moved: list[Path] = []
    for path in reversed(prefix.later):
        aside, file = _make_aside(path)
        os.close(file)
        with journal_errors("move", path):
            path.replace(aside)
        moved.insert(0, aside)
    return (_cut(prefix.file, prefix.end), *moved) if size else tuple(moved)


def _cut(path: Path, end: int) -> Path:
    """Move all from a byte on to a new file; after a crash in between both have the bytes."""
    aside, copy = _make_aside(path)
    with journal_errors("write", path):
        with path.open("r+b") as file, open(copy, "wb") as torn:
            file.seek(end)
            shutil.copyfileobj(file, torn, 1 << 20)
            torn.flush()
            os.fsync(torn.fileno())
            sync_file(path.parent)
            file.truncate(end)
        sync_file(path)
    return aside


def _make_aside(path: Path) -> tuple[Path, int]:
    """Make a new file beside another, for the part moved out; open for writing."""
    for number in count():
        aside = path.with_name(f"{path.name}.torn{f'.{number}' if number else ''}")
        try:
            return aside, os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        except FileExistsError:
            continue
        except OSError as error:
            raise cannot("make", aside, error) from None
    raise AssertionError("there is always a next number")
