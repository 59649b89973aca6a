"""A run directory, and the journal in it: every record is written before its effect happens.

    runs/<execution id>/
        trace.dig.jsonl   the trace, one record a line; the truth about the run
        side.json         what is no part of the trace: when, where and with what it ran
        result.json       how it ended

Equal seeds give equal traces, so what differs between two executions (date, versions, machine)
stands in the side file. Files are readable by their owner only.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dig
from dig.codec import encode
from dig.errors import JournalError
from dig.records import Record

from .reader import TRACE

SIDE = "side.json"
RESULT = "result.json"
_MODE = 0o600


class Journal:
    """Writes records to a trace file: one write each, before it returns.

    What was written survives a crash of this process. It is a `Sink`: hand it to a monitor.
    """

    def __init__(self, path: Path) -> None:
        """Make the file.

        Raises:
            JournalError: It cannot be made, or is there already.
        """
        self.path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, _MODE)
        except OSError as error:
            raise _cannot("make", path, error) from None

    def __call__(self, record: Record) -> None:
        """Write one record.

        Raises:
            JournalError: It cannot be written, because the disk is full for instance.
        """
        line = memoryview(encode(record).encode("ascii") + b"\n")
        try:
            while line:  # a write may be cut short, by a signal or a disk that is almost full
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise _cannot("write", self.path, error) from None

    def close(self) -> None:
        """Close the file; twice does no harm."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class RunDirectory:
    """The directory of one execution.

    Attributes:
        path: The directory; its name is the execution id.
        journal: The trace in it, open for writing.
    """

    def __init__(self, parent: Path, about: Mapping[str, Any]) -> None:
        """Make a directory for a new execution below `parent`, with its side file.

        Args:
            parent: Where runs are kept; made if it is missing.
            about: What the side file says besides date, versions and machine.

        Raises:
            JournalError: It cannot be made.
        """
        now = datetime.now(UTC)
        execution = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self.path = parent / execution
        try:
            self.path.mkdir(parents=True, mode=0o700)
        except OSError as error:
            raise _cannot("make", self.path, error) from None
        self._write(SIDE, {"execution": execution, "began": now.isoformat(), **about, **_machine()})
        self.journal = Journal(self.path / TRACE)

    def write_result(self, result: Mapping[str, Any]) -> Path:
        """Write `result.json`, whole or not at all; returns its path.

        Raises:
            JournalError: It cannot be written.
        """
        return self._write(RESULT, result)

    def _write(self, name: str, content: Mapping[str, Any]) -> Path:
        path, part = self.path / name, self.path / f"{name}.part"
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "w") as file:
                json.dump(content, file, indent=2)
                file.write("\n")
            part.replace(path)
        except OSError as error:
            raise _cannot("write", path, error) from None
        return path


def _machine() -> dict[str, str]:
    return {
        "dig": dig.__version__,
        "python": platform.python_version(),
        "platform": sys.platform,
    }


def _cannot(what: str, path: Path, error: OSError) -> JournalError:
    return JournalError(f"cannot {what} {path}: {error.strerror or error}")
