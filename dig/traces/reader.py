"""Reading trace files: strict, line by line, with the line in every error."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from dig.codec import decode
from dig.errors import DamageError, RecordError, RuleError, TraceError
from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.records import Limits, Record, Run
from dig.watch import Watch

from .chain import BLOBS, CHAIN, Chain, is_journal
from .json_text import parse

MOST_BYTES = 17 * 1024 * 1024
"""The longest line that is read: an event of 16 MiB and what stands around it."""

TRACE = "trace.dig.jsonl"

_BLOB = re.compile("[0-9a-f]{64}")
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file


def trace_path(path: Path) -> Path:
    """The trace file that is meant: a run directory stands for the trace in it."""
    return path / TRACE if path.is_dir() else path


def read_records(path: Path, *, payloads: bool = True) -> Iterator[Record]:
    """Read the records of a trace file (or run directory), one a line.

    The hash chain of a journal is checked on the way. A part of a line at its end, which a crash
    or a writer at work leaves there, is not read.

    Args:
        path: Where.
        payloads: Whether to read large payloads that lie beside the trace; without, they are
            ``None``, and may be missing.

    Raises:
        TraceError: The file cannot be read, or a line is no record, or damaged; the line is named.
    """
    for line in read_lines(path):
        yield record_of(trace_path(path), line, payloads=payloads)


class Line(NamedTuple):
    """One line of a trace.

    Attributes:
        number: Its number, counted from 1.
        text: The line, with its newline.
        row: The JSON object in it.
    """

    number: int
    text: bytes
    row: dict[str, Any]


def record_of(path: Path, line: Line, *, payloads: bool = True) -> Record:
    """The record in a line of a trace file; see `read_records`.

    Raises:
        TraceError: There is none in it.
    """
    try:
        row = line.row
        if payloads and BLOBS in row:
            row = {**row, **read_blobs(path.parent, row[BLOBS])}
        return decode(row)
    except RecordError as error:
        raise TraceError(path, line.number, str(error)) from None


def read_lines(path: Path) -> Iterator[Line]:
    """Read the lines of a trace; see `read_records`.

    Raises:
        TraceError: The file cannot be read, or a line is no JSON object, or damaged.
    """
    tail = Tail(path)
    yield from tail.read()
    if tail.number == 0:
        raise TraceError(tail.path, None, "is empty; a trace begins with a record of kind `run`")


class Tail:
    """The lines of a trace that may still be growing, each read once.

    Attributes:
        path: The trace file.
        number: How many lines were read.
        is_journal: Whether the first of them begins a journal.
    """

    def __init__(self, path: Path) -> None:
        """Begin before the first line.

        Args:
            path: The trace file or run directory.
        """
        self.path = trace_path(path)
        self.number = 0
        self.is_journal = False
        self._chain = Chain()
        self._at = 0  # the first byte that was not read
        self._is_open = False  # the latest line had no newline

    def read(self, *, is_growing: bool = False) -> Iterator[Line]:
        """Read the lines that were not read yet.

        Args:
            is_growing: Whether a part of a line may stand at the end of any trace: it is left
                for the next time. If not, only a journal may have one.

        Raises:
            TraceError: The file cannot be read, is shorter than what was read of it, or a line
                is no JSON object, or damaged.
        """
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._at:
                    raise TraceError(self.path, None, "has become shorter: it is another trace now")
                file.seek(self._at)
                while text := file.readline(MOST_BYTES + 1):
                    if self._is_open and not text.strip():  # the rest of a line that was taken
                        self._at += len(text)
                        continue
                    is_part = not text.endswith(b"\n") and len(text) <= MOST_BYTES
                    if is_part and (self.is_journal or (is_growing and not _is_whole(text))):
                        return
                    yield self._take(text)
        except OSError as error:
            raise TraceError(
                self.path, None, f"cannot be read: {error.strerror or error}"
            ) from None

    def _take(self, text: bytes) -> Line:
        number = self.number + 1
        if self.is_journal:
            _check_chain(self._chain, self.path, number, text)
        row = _parse(self.path, number, text)
        if number == 1 and is_journal(row):
            self.is_journal = True
            _check_chain(self._chain, self.path, 1, text)
        elif CHAIN in row and not self.is_journal:
            raise TraceError(self.path, 1, "is damaged: the lines after it are a journal's")
        self.number = number
        self._at += len(text)
        self._is_open = not text.endswith(b"\n")
        return Line(number, text, row)


def _is_whole(text: bytes) -> bool:
    """Whether a last line without a newline is whole: no part of a JSON object is an object.

    That of a journal is not: the newline belongs to what is sealed.
    """
    try:
        return not is_journal(parse_row(text))
    except RecordError:
        return False


def _check_chain(chain: Chain, path: Path, number: int, text: bytes) -> None:
    if not chain.fits(text):
        reason = "the line is damaged: its checksum does not fit"
        if number > 1:
            reason += f" (--salvage keeps the {number - 1} before it)"
        raise DamageError(path, number, reason)


def _parse(path: Path, number: int, text: bytes) -> dict[str, Any]:
    try:
        return parse_row(text)
    except RecordError as error:
        raise TraceError(path, number, str(error)) from None


def read_blobs(folder: Path, names: object) -> dict[str, Any]:
    """The payloads that lie beside a trace, by their keys in a record.

    Raises:
        RecordError: One is missing or damaged.
    """
    if type(names) is not dict:
        raise RecordError("`blobs` must be an object of checksums")
    return {key: _read_blob(folder, name) for key, name in names.items()}


def _read_blob(folder: Path, name: object) -> Any:
    if type(name) is not str or not _BLOB.fullmatch(name):
        raise RecordError("`blobs` names what is no checksum")
    try:
        file = os.open(folder / BLOBS / f"{name}.json", os.O_RDONLY | _NO_LINKS | _NO_WAITING)
        with open(file, "rb") as blob:
            data = blob.read(MOST_BYTES + 1)
    except OSError as error:
        raise RecordError(f"the payload {name} cannot be read: {error.strerror}") from None
    if sha256(data).hexdigest() != name:
        raise RecordError(f"the payload {name} is damaged")
    try:
        return parse(data.decode("utf-8"), "it")
    except (ValueError, RecordError) as error:
        raise RecordError(f"the payload {name} is no JSON that can be read: {error}") from None


def parse_row(line: bytes) -> dict[str, Any]:
    """The JSON object of one line of a trace file.

    Raises:
        RecordError: It is none; the message says why.
    """
    if len(line) > MOST_BYTES:
        raise RecordError(f"the line is longer than {MOST_BYTES} bytes")
    try:
        row = parse(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RecordError(f"the line is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise RecordError(f"the line is not JSON: {error.msg} (column {error.colno})") from None
    if type(row) is not dict:
        raise RecordError("a record must be a JSON object")
    return row


def read_graph(path: Path) -> InteractionGraph:
    """The graph of a trace.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    watch = Watch(())
    for _ in check_trace(path, watch):
        pass
    return watch.graph


def check_trace(
    path: Path, watch: Watch, limits: Callable[[Limits], Limits] = lambda limits: limits
) -> Iterator[Finding]:
    """What detectors find in a stored trace, in order, each as soon as the graph has it.

    Args:
        path: The trace file or run directory.
        watch: A fresh watch with the detectors.
        limits: Changes the thresholds that the trace was made with.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    for number, record in enumerate(read_records(path, payloads=False), 1):
        if isinstance(record, Run):
            record = replace(record, limits=limits(record.limits))
        try:
            yield from watch.feed(record)
        except RuleError as error:
            raise TraceError(trace_path(path), number, str(error)) from None
