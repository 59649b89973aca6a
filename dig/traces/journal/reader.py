"""Reading trace files: strict, line by line, with the line in every error."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dig._util.files import is_there, open_file
from dig._util.json_text import MOST_BYTES as MOST_BYTES
from dig._util.json_text import parse, parse_row
from dig.detectors.finding import Finding
from dig.detectors.team_usual import TeamUsual
from dig.detectors.watch import Watch
from dig.errors import DamageError, RecordError, RuleError, SettingsError, TraceError
from dig.graph.chain import BLOBS, CHAIN, Chain, is_journal
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from dig.graph.records import Finish, Limits, Record, Run

from .segments import TRACE as TRACE
from .segments import fault, first_segment, later_segments, missing, segment_path
from .segments import trace_path as trace_path

_T = TypeVar("_T")
_NO_TRACE = "a trace begins with a record of kind `run`"


def read_records(path: Path, *, payloads: bool = True) -> Iterator[Record]:
    """Read the records of a trace (file or run directory), one record per line, from all segments.

    The hash chain of a journal is checked on the way. A part of a line at its end, which a crash
    or a writer at work leaves there, is not read.

    Args:
        path: The trace file or run directory.
        payloads: Whether to read large payloads that lie beside the trace; without, the hash of
            each stands for it, and they may be missing.

    Raises:
        TraceError: A file is missing or cannot be read, or a line is no record, or damaged; file
            and line are named.
    """
    for line in read_lines(path):
        yield record_of(line, payloads=payloads)


class Line(NamedTuple):
    """A line of a trace.

    Attributes:
        text: The line, with its newline.
        row: The JSON object in it.
        file: The file in which it stands.
        number: Its number there, counted from 1.
        at: The place of its first byte there.
    """

    text: bytes
    row: dict[str, Any]
    file: Path
    number: int
    at: int


def record_of(line: Line, *, payloads: bool = True) -> Record:
    """The record in a line of a trace; see `read_records`.

    Raises:
        TraceError: The line is no record.
    """
    try:
        row = line.row
        if BLOBS in row:
            row = row | _blobs(line.file.parent, row[BLOBS], payloads=payloads)
        return decode(row)
    except RecordError as error:
        raise TraceError(line.file, line.number, str(error)) from None


def read_lines(path: Path) -> Iterator[Line]:
    """Read the lines of a trace; see `read_records`.

    Raises:
        TraceError: A file is missing or cannot be read, or a line is no JSON object, or damaged.
    """
    tail = Tail(path)
    yield from tail.read()
    if tail.number == 0:
        raise TraceError(tail.path, None, f"is empty; {_NO_TRACE}")


class Tail:
    """The lines of a possibly growing trace, each read once.

    Attributes:
        path: The trace file; the first one, if there are several.
        number: The number of lines that were read.
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
        self._is_finished = False
        self._segment = 1
        self._begin(self.path)

    def _begin(self, file: Path) -> None:
        self._file = file
        self._before = self.number  # lines in the files before this one
        self._at = 0  # the first byte that was not read
        self._is_open = False  # the latest line had no newline

    def read(self, *, is_growing: bool = False) -> Iterator[Line]:
        """Read all new lines.

        Args:
            is_growing: Whether a part of a line may stand at the end of any trace: it is left
                for the next time. If not, only a journal may have one.

        Raises:
            TraceError: A file is missing, cannot be read, or is shorter than what was read of it,
                or a line is no JSON object, or damaged.
        """
        while True:
            following = segment_path(self.path, self._segment + 1)
            is_full = is_there(following)  # seen before the end is: nothing comes after that
            yield from self._read_file(is_growing, is_full)
            if is_full:
                self._segment += 1
                self._begin(following)
            elif not self._goes_on(following):
                return

    def _goes_on(self, following: Path) -> bool:
        """Whether a next segment has come meanwhile.

        Raises:
            TraceError: The segment is missing, since later ones are there.
        """
        strays = [] if self._is_finished else later_segments(self.path, self._segment)
        if not strays or is_there(following):
            return bool(strays)
        whole_records = self.number if self.is_journal else 0
        raise missing(self.path, self._segment + 1, whole_records=whole_records)

    def _read_file(self, is_growing: bool, is_full: bool) -> Iterator[Line]:
        try:
            with open_file(self._file) as file:
                if os.fstat(file.fileno()).st_size < self._at:
                    reason = "has become shorter: it is another trace now"
                    raise TraceError(self._file, None, reason)
                file.seek(self._at)
                while text := file.readline(MOST_BYTES + 1):
                    if self._is_open and not text.strip():  # the rest of a line that was taken
                        self._at += len(text)
                        continue
                    is_part = not is_full and not text.endswith(b"\n") and len(text) <= MOST_BYTES
                    if is_part and (self.is_journal or (is_growing and not _is_whole(text))):
                        return
                    yield self._take(text)
        except FileNotFoundError:
            raise missing(self.path, self._segment) from None
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            raise TraceError(self._file, None, reason) from None

    def _take(self, text: bytes) -> Line:
        number = self.number + 1 - self._before
        if self.is_journal:
            self._check_chain(number, text)
        try:
            row = parse_row(text)
        except RecordError as error:
            first = "" if self.number else f"; {_NO_TRACE}"
            raise TraceError(self._file, number, f"{error}{first}") from None
        if self.number == 0:
            self._check_first(row, text)
        elif CHAIN in row and not self.is_journal:
            raise TraceError(self.path, 1, "is damaged: the lines after it are a journal's")
        self.number += 1
        at, self._at = self._at, self._at + len(text)
        self._is_open = not text.endswith(b"\n")
        # Nothing follows the end of a run, so strays after it are not waited for.
        self._is_finished = row.get("kind") == Finish.kind
        return Line(text, row, self._file, number, at)

    def _check_first(self, row: dict[str, Any], text: bytes) -> None:
        first = first_segment(self.path)
        if first is not None and row.get("kind") != Run.kind:
            reason = f"is only a part of a trace: name the file it begins with, {first.name}"
            raise TraceError(self.path, None, reason)
        if "kind" not in row:
            raise TraceError(self.path, None, f"is in no known format; {_NO_TRACE}")
        if is_journal(row):
            self.is_journal = True
            self._check_chain(1, text)

    def _check_chain(self, number: int, text: bytes) -> None:
        if self._chain.follows(text):
            return
        reason = "the line is damaged"
        if number == 1 and self._segment > 1:
            before = segment_path(self.path, self._segment - 1).name
            reason += f", or does not go on where {before} ends"
        reason += ": its checksum does not fit"
        if self.number:
            reason += f" (`digmon verify --salvage` keeps the {self.number} before it)"
        raise DamageError(self._file, number, reason)


def _is_whole(text: bytes) -> bool:
    """Whether a last line without a newline is whole: no part of a JSON object is an object.

    A line of a journal is not: its newline is part of the sealed text.
    """
    try:
        return not is_journal(parse_row(text))
    except RecordError:
        return False


def read_graph(path: Path) -> InteractionGraph:
    """The graph of a trace.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    graph = InteractionGraph()
    for _ in feed_records(path, graph.apply):
        pass
    return graph


def check_trace(
    path: Path,
    watch: Watch,
    limits: Callable[[Limits], Limits] = lambda limits: limits,
    usual: TeamUsual | None = None,
) -> Iterator[Finding]:
    """The findings of detectors in a stored trace, in order, each as soon as raised.

    `follow_trace` has the arguments.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
        SettingsError: The usual findings were learned from another team.
    """
    for item in follow_trace(path, watch, limits, usual):
        if isinstance(item, Finding):
            yield item


def follow_trace(
    path: Path,
    watch: Watch,
    limits: Callable[[Limits], Limits] = lambda limits: limits,
    usual: TeamUsual | None = None,
) -> Iterator[Record | Finding]:
    """The records of a stored trace, applied to the graph, among the findings.

    What a record makes due stands before it, what it raises after it.

    Args:
        path: The trace file or run directory.
        watch: A fresh watch with the detectors.
        limits: Changes the thresholds that the trace was made with; by default, not at all.
        usual: The usual findings of the team; ``None``: those that the trace names.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
        SettingsError: The usual findings were learned from another team.
    """

    def feed(record: Record) -> list[Record | Finding]:
        if isinstance(record, Run):
            record = replace(record, limits=limits(record.limits))
            if usual is not None:
                try:
                    expected = usual.of_team(record.agents, record.limits)
                except SettingsError as error:
                    raise SettingsError(f"{path}: {error}") from None
                record = replace(record, usual=expected)
        # Findings that are due by time are raised before the record applies, as in the run.
        due = watch.advance(record.us)
        watch.graph.apply(record)
        return [*due, record, *watch.look(record)]

    for items in feed_records(path, feed):
        yield from items


def feed_records(
    path: Path, feed: Callable[[Record], _T], *, payloads: bool = False,
    tell: Callable[[Line], None] | None = None,
) -> Iterator[_T]:  # fmt: skip
    """The results of a function for each record of a trace; the function checks the rules.

    Args:
        path: The trace file or run directory.
        feed: Takes a record, and raises a `RuleError` if it contradicts those before it.
        payloads: Whether to read large payloads that lie beside the trace; by default not.
        tell: Takes each line before its record is fed.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    for number, line in enumerate(read_lines(path), 1):
        record = record_of(line, payloads=payloads)
        if tell is not None:
            tell(line)
        try:
            result = feed(record)
        except RuleError as error:
            raise fault(trace_path(path), number, str(error)) from None
        yield result


# --- payloads beside the trace ---


_CHECKSUM = re.compile("[0-9a-f]{64}")
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file


def _blobs(folder: Path, names: object, *, payloads: bool) -> dict[str, Any]:
    """The payloads beside a trace, by key in a record; unread, the hash stands for each."""
    if type(names) is not dict:
        if not payloads:
            return {}
        raise RecordError("`blobs` must be an object of checksums")
    if not payloads:
        return {key: f"blob {name}" for key, name in names.items()}
    return {key: _read_blob(folder, name) for key, name in names.items()}


def _read_blob(folder: Path, name: object) -> Any:
    if type(name) is not str or not _CHECKSUM.fullmatch(name):
        raise RecordError("`blobs` names what is no checksum")
    try:
        # A trace may come from anywhere: nothing outside of its folder is read.
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
