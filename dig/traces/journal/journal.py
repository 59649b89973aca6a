"""A run directory and the journal inside: every record is written before the effect.

    runs/<execution id>/
        trace.dig.jsonl       the trace, one record a line, with a hash chain; the truth
        trace.dig.jsonl.000002    goes on after it, once it is full (`dig.traces.journal.segments`)
        blobs/<sha256>.json   payloads of more than 64 KiB, which the trace names
        trace.dig.jsonl.unreplayable   is there if the run went on although the disk was full, or
                              the trace's file was removed, moved or cut
        side.json             what is no part of the trace: when, where and with what it ran
        result.json           how it ended

Equal seeds give equal traces, so data that differs between executions (date, versions, machine)
stands in the side file. Files are readable by their owner only. The promise of each level of
durability is in docs/internals/journal.md.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import secrets
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from dig._util.files import read_json
from dig._util.redaction import may_hold_secrets, redact
from dig._version import __version__
from dig.errors import JournalError, SettingsError
from dig.graph.chain import BLOBS, SealedLines
from dig.graph.records import Finish, Record
from dig.runtime.group_commit import Durability

from .appending import Appending, Write, check_size
from .durable_files import DiskFull as DiskFull
from .durable_files import cannot, is_full, is_gone, make_directory, mark, sync_file, write_file
from .segments import SEGMENT_BYTES, TRACE

SIDE = "side.json"
RESULT = "result.json"
UNREPLAYABLE = ".unreplayable"

LOOK_S, LOOK_RECORDS = 1.0, 1_000
"""After how long, or how many records, it is looked whether the file is still there and whole."""

logger = logging.getLogger("dig.journal")

_sync = getattr(os, "fdatasync", os.fsync)


class Journal:
    """Writes records to a trace file before returning; the records of a request in one write.

    A written record survives a crash of this process. A journal is a `Sink`: hand it to a monitor;
    and a `Durable`: hand it to a bus, too, if a record is to be synced before its effect.

    Attributes:
        path: The file; the first one, if there are several.
        durability: The level of durability: `process`, `effects` or `power`.
        unreplayable_from: The first record that is not kept, because it did not fit on the disk or
            the file was removed, moved or cut; in that case those before may be lost, too.
    """

    def __init__(
        self,
        path: Path,
        *,
        header: Mapping[str, Any] | None = None,
        durability: Durability = "process",
        disk_full: DiskFull = "stop",
        segment_bytes: int | None = None,
        write: Write = os.write,
        clock: Callable[[], float] = time.monotonic,
        is_new: bool = True,
    ) -> None:
        """Make the file, or open that of a run that goes on.

        Args:
            path: The path of the file.
            header: A description of how the run is made, plain JSON for the first line; replay and
                a fork read it (`Setup.header`).
            durability: `process`, `effects` or `power`.
            disk_full: The reaction when a record does not fit, or the file was taken away: `stop`
                the run, or `continue` it without a journal.
            segment_bytes: The size of a file after which the journal goes on in a next one;
                ``None``: it stays one file.
            write: Writes some bytes to a file descriptor, and returns how many.
            clock: Seconds, from any beginning; says when to look after the file.
            is_new: Whether the file is made; if not, it is locked, and `go_on` says what comes.

        Raises:
            JournalError: The file cannot be made, is there already (or is not there), or is locked
                by another process.
            SettingsError: No file is so small.
        """
        self.path = path
        self.durability = durability
        self.unreplayable_from: int | None = None
        self._disk_full = disk_full
        self._lines = SealedLines(header or {})
        self._records = 0
        self._synced = -1  # records that are on the disk; -1: nor is the file's name
        self._blobs: deque[Path] = deque()  # not synced yet
        self._syncing = Lock()
        self._broken: OSError | None = None
        self._loss: JournalError | None = None
        self._clock = clock
        self._look_at, self._look_at_s = LOOK_RECORDS, clock() + LOOK_S
        try:
            self._files = Appending(path, segment_bytes, write, is_new=is_new)
        except OSError as error:
            raise cannot("make" if is_new else "write", path, error) from None

    def go_on(self, lines: SealedLines, records: int) -> None:
        """Take the further records of a run.

        Args:
            lines: The lines of the run so far.
            records: The number of records in the file.
        """
        self._lines, self._records = lines, records

    def __call__(self, record: Record) -> None:
        """Write a record, like `write`."""
        self.write([record])

    def write(self, records: Sequence[Record]) -> None:
        """Write some records, all or none.

        Raises:
            JournalError: The lines cannot be written, because the disk is full for instance; or
                somebody has removed, moved or cut the file.
        """
        if self.unreplayable_from is not None:
            if self._loss is not None and self._disk_full == "stop":
                raise self._loss
            return
        try:
            # Payloads beside the trace come first: a line never names a file that is not there.
            lines = [*map(self._lines.line, records)]
            while self._lines.blobs:
                self._keep(*self._lines.blobs.popitem())
            self._files.append(lines)
        except OSError as error:
            if is_gone(error):
                return self._lose(f"{self._files.current} was removed or moved")
            if self._disk_full == "stop" or not is_full(error):
                raise cannot("write", self._files.current, error) from None
            self._go_on_without()
            return
        number, now = self._records + len(records), self._clock()
        # A look is two calls of the system.
        if now >= self._look_at_s or number >= self._look_at or type(records[-1]) is Finish:
            self._look_at, self._look_at_s = number + LOOK_RECORDS, now + LOOK_S
            self._files.look()
        if self._files.damage is not None:
            return self._lose(self._files.damage)
        self._records = number

    def sync(self) -> None:
        """Block until all written records are on the disk; may be called from any thread.

        Raises:
            JournalError: The disk has failed; its content is unknown from then on.
        """
        with self._syncing:
            # Records written while the disk syncs belong to the next sync.
            written = self._records
            if self._broken is not None:
                raise cannot("sync", self.path, self._broken)
            if written == self._synced or self._loss is not None:
                return
            try:
                self._sync_files()
            except OSError as error:
                if is_gone(error):
                    return self._lose(f"{self._files.current} was removed or moved")
                # A failed sync may drop the data for good, and a second one would report success.
                self._broken = error
                raise cannot("sync", self.path, error) from None
            self._synced = written

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._files.close()

    def _sync_files(self) -> None:
        """Sync new files, by name: another thread may be going on to the next file."""
        current = self._files.current  # first: if it is full by now, it is synced twice
        blobs, full = _take_all(self._blobs), _take_all(self._files.full)
        for path in (*blobs, *full):
            sync_file(path)
        sync_file(current, _sync)
        if blobs:
            sync_file(self.path.parent / BLOBS)
        if blobs or full or self._synced < 0:
            sync_file(self.path.parent)

    def _keep(self, name: str, data: bytes) -> None:
        """Write a payload beside the trace, unless an equal payload is there already."""
        folder = self.path.parent / BLOBS
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"{name}.json"
        # Equal payloads share a file, as the name is their hash.
        if not path.exists():
            write_file(path, data)
            self._blobs.append(path)

    def _lose(self, change: str) -> None:
        """Go on without a file after damage to it, or stop the run."""
        reason = f"{change} while it was written: nothing is kept from record {self._records} on"
        self._loss = JournalError(reason)
        logger.error("dig: %s", self._loss)
        with suppress(JournalError):  # its folder may be gone
            self._go_on_without()
        self.unreplayable_from = self._records
        if self._disk_full == "stop":
            raise self._loss

    def _go_on_without(self) -> None:
        """Mark the trace as not replayable: the run goes on after the last record."""
        mark(self._files.folder / (self.path.name + UNREPLAYABLE))
        self.unreplayable_from = self._records


@dataclass(frozen=True)
class Keeping:
    """The settings for keeping a run on disk.

    Attributes:
        durability: The level of durability; by default `process`, which survives its crash.
        disk_full: Whether the run goes on when the disk is full; by default it stops.
        segment_bytes: The largest size of a file of the trace; ``None``: it stays one file.
    """

    durability: Durability = "process"
    disk_full: DiskFull = "stop"
    segment_bytes: int | None = SEGMENT_BYTES

    def __post_init__(self) -> None:
        """Check the size of segments.

        Raises:
            SettingsError: No file is so small.
        """
        check_size(self.segment_bytes)


KEEPING = Keeping()
"""The defaults for keeping a run."""


def describe_execution(about: Mapping[str, Any]) -> dict[str, Any]:
    """Make the side file of a new execution: name, date, versions and machine."""
    now = datetime.now(UTC)
    execution = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    machine = {"dig": __version__, "python": platform.python_version(), "platform": sys.platform}
    return {"execution": execution, "began": now.isoformat(), **about, **machine}


class RunDirectory:
    """The directory of an execution.

    Attributes:
        path: The directory; its name is the execution id.
        journal: The trace in it, open for writing.
    """

    def __init__(
        self,
        parent: Path,
        about: Mapping[str, Any],
        *,
        header: Mapping[str, Any] | None = None,
        keeping: Keeping = KEEPING,
    ) -> None:
        """Make a directory for a new execution below `parent`, with a side file.

        Args:
            parent: The directory of all runs; made if it is missing.
            about: The fields of the side file besides date, durability, versions and machine.
            header: The description in the journal's first line, besides the record.
            keeping: The way the run is kept; a `durability` other than `process` is for directory
                and files beside the trace, too.

        Raises:
            JournalError: The directory cannot be made.
        """
        side = describe_execution({**about, "durability": keeping.durability})
        self._take(parent / side["execution"], header or {}, keeping)
        try:
            make_directory(self.path, synced=self._is_synced)
        except OSError as error:
            raise cannot("make", self.path, error) from None
        self._write(SIDE, side)
        self.journal = Journal(self.path / TRACE, header=header, **asdict(keeping))

    @classmethod
    def reopen(cls, path: Path, keeping: Keeping = KEEPING) -> RunDirectory:
        """Open the directory of a run that goes on, and lock its journal.

        Args:
            path: The directory.
            keeping: The way the rest of the run is kept.

        Raises:
            JournalError: The journal cannot be opened, or another process has locked it.
        """
        directory = cls.__new__(cls)
        directory._take(path, {}, keeping)
        directory.journal = Journal(path / TRACE, is_new=False, **asdict(keeping))
        return directory

    def _take(self, path: Path, header: Mapping[str, Any], keeping: Keeping) -> None:
        self.path = path
        self._is_synced = keeping.durability != "process"
        self._redacts = header.get("redacts", True)

    def write_result(self, result: Mapping[str, Any]) -> Path:
        """Write `result.json`, whole or not at all; return the path.

        Raises:
            JournalError: The result cannot be written.
        """
        if self.journal.unreplayable_from is not None:
            result = {**result, "unreplayable_from": self.journal.unreplayable_from}
        return self._write(RESULT, result)

    def _write(self, name: str, content: Mapping[str, Any]) -> Path:
        path = self.path / name
        try:
            text = json.dumps(content, indent=2)
            # Options of a user may hold secrets, and have not gone through the monitor.
            if self._redacts and may_hold_secrets((text,)):
                text = json.dumps(redact(json.loads(text)), indent=2)
            write_file(path, f"{text}\n".encode(), synced=self._is_synced)
        except OSError as error:
            raise cannot("write", path, error) from None
        return path


def _take_all(paths: deque[Path]) -> list[Path]:
    """Take all current items out of a queue; other threads may be adding more."""
    return [paths.popleft() for _ in range(len(paths))]


def read_side(run: Path) -> dict[str, Any]:
    """The side file of a run directory.

    Raises:
        SettingsError: There is none, or it cannot be read.
    """
    side = read_json(run / SIDE)
    if not isinstance(side, dict):
        raise SettingsError(f"{run / SIDE} is no JSON object")
    return side
