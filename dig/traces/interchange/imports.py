"""Imports: the table of foreign formats that can be read as a trace.

A reader takes the path and the text of a file, and returns records and its guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dig._util.files import open_file
from dig._util.registry import Registry
from dig.errors import JournalError, SettingsError, TraceError
from dig.graph.records import Record
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE

from .message_log import read_log
from .scribe import Guesses

MOST_BYTES = 256 * 1024 * 1024
"""The largest file that is read; it is held in memory as a whole."""

Reader = Callable[[Path, str], tuple[list[Record], Guesses]]


@dataclass(frozen=True)
class Format:
    """A foreign format.

    Attributes:
        read: Reads a file, given its path and its text.
        fits: Whether a text is of this format.
    """

    read: Reader
    fits: Callable[[str], bool]


FORMATS: Mapping[str, Format] = Registry("formats", {"log": Format(read_log, lambda text: True)})
"""The formats by name; a text that fits none of the added ones is read as a log."""


@dataclass(frozen=True)
class Imported:
    """An imported trace.

    Attributes:
        format: The format that it was in.
        guesses: The guesses that were necessary, each kind once.
    """

    format: str
    records: list[Record]
    guesses: Guesses


def import_file(path: Path, format: str | None = None) -> Imported:
    """Read a recording of another program.

    Args:
        path: The file.
        format: One of `FORMATS`; ``None``: the one that the content fits.

    Raises:
        SettingsError: There is no such format.
        TraceError: The file cannot be read, or is not of this format.
    """
    text = read_text(path)
    name = format or next(name for name in reversed([*FORMATS]) if FORMATS[name].fits(text))
    if name not in FORMATS:
        raise SettingsError(f"there is no format {name!r}; known are: {', '.join(FORMATS)}")
    records, guesses = FORMATS[name].read(path, text)
    return Imported(name, records, guesses)


def read_text(path: Path) -> str:
    """The text of a file of another program.

    Raises:
        TraceError: The file cannot be read, is too long, or is not UTF-8.
    """
    try:
        with open_file(path) as file:
            # One byte more than allowed tells a file that is too long.
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise TraceError(path, None, f"is longer than {MOST_BYTES} bytes")
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(path, None, f"is not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise TraceError(path, None, f"cannot be read: {error.strerror or error}") from None


def save(imported: Imported, out: Path) -> Path:
    """Write an imported trace; return the path.

    Args:
        imported: The trace.
        out: A file, if it ends in `.jsonl`; else a run directory, which is made.

    Raises:
        JournalError: The trace cannot be written, or is there already.
    """
    path = out if out.suffix == ".jsonl" else out / TRACE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot make {path.parent}: {error.strerror or error}") from None
    with closing(Journal(path)) as journal:
        for record in imported.records:
            journal(record)
    return path
