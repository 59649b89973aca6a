"""An overview of the runs in a directory, quick the second time: a disposable SQLite index.

The traces are the truth. The index only spares reading them again: its row for a run is valid
as long as the run's files have the size and the time that they had, and a sum over it holds. If it
is missing, damaged, locked or not to be written, the overview is the same, only slower.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from dig._version import __version__
from dig.errors import TraceError
from dig.traces.journal.journal import RESULT, SIDE
from dig.traces.journal.segments import TRACE, is_run, segments

from .summary import RunSummary, stored_state, summarise

INDEX = ".index.sqlite"
_SUFFIX = ".dig.jsonl"
_VERSION = 7
_WAIT_S = 5.0
_TABLE = """runs
    (key TEXT PRIMARY KEY, stamp TEXT NOT NULL, body TEXT NOT NULL, digest BLOB NOT NULL)"""

Row = tuple[str, str, str, bytes]


def overview(folder: Path) -> list[RunSummary]:
    """The summaries of all runs in a directory: run directories, and trace files.

    Args:
        folder: The directory. It gets an index, if it can be written to. A run directory has
            one run, itself, and no index.

    Raises:
        TraceError: There is no such directory.
    """
    if is_run(folder):
        return [summarise(folder)]
    paths = run_paths(folder)
    rows = _load(folder / INDEX)
    summaries: list[RunSummary] = []
    news: list[Row] = []
    for path in paths:
        key, stamp = json.dumps(path.name), _stamp(path)
        summary = _recall(rows.pop(key, None), stamp)
        if summary is not None and summary.state in ("in progress", "cut off"):
            summary = replace(summary, state=stored_state(path))
            if stamp != _stamp(path):  # it has ended just now
                summary = None
        if summary is None:
            summary = summarise(path)
            body = json.dumps(summary.to_json())
            if stamp == _stamp(path):  # it did not grow while it was read
                news.append((key, stamp, body, _digest(stamp, body)))
        summaries.append(replace(summary, path=str(path)))  # the directory may have been moved
    if news or rows:  # the remaining known rows are of runs that are gone
        _save(folder / INDEX, news, rows)
    return summaries


def run_paths(folder: Path) -> list[Path]:
    """The run directories and trace files in a directory, by name.

    Raises:
        TraceError: There is no such directory.
    """
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if (path.is_file() if path.name.endswith(_SUFFIX) else is_run(path))
        )
    except OSError as error:
        raise TraceError(folder, None, f"cannot be read: {error.strerror or error}") from None


def _stamp(path: Path) -> str:
    """A text for the state of a run's files and the version of the reader."""
    first = path if path.is_file() else path / TRACE
    files = [*segments(first)]
    files += [path / name for name in (RESULT, SIDE) if path.is_dir()]
    sizes = []
    for file in files:
        try:
            status = file.stat()
            # The inode, too: a file may be replaced by another of equal size and time.
            sizes.append((status.st_size, status.st_mtime_ns, status.st_ino))
        except OSError:
            sizes.append((-1, 0, 0))
    return json.dumps([_VERSION, __version__, sizes])


def _digest(stamp: str, body: str) -> bytes:
    return blake2b(f"{stamp}\n{body}".encode(), digest_size=16).digest()


def _recall(row: Row | None, stamp: str) -> RunSummary | None:
    """The summary in a row of the index, if the row still holds."""
    if row is None:
        return None
    _, old_stamp, body, digest = row
    if old_stamp != stamp or digest != _digest(stamp, body):
        return None
    try:
        return RunSummary(**json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return None


# --- the file ---


def _load(path: Path) -> dict[str, Row]:
    """The rows of the index by key; none, if the index cannot be read."""
    if not path.exists() or not _is_file(path):
        return {}
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_S)) as database:
            _check(database)
            rows = database.execute("SELECT key, stamp, body, digest FROM runs").fetchall()
    except sqlite3.Error as error:
        _discard_if_damaged(path, error)
        return {}
    return {row[0]: row for row in rows if [type(part) for part in row] == [str, str, str, bytes]}


def _save(path: Path, news: Iterable[Row], removed: Iterable[str]) -> None:
    """Update the index; after a failure, only time is lost.

    Args:
        path: The index.
        news: The rows to put into it.
        removed: The keys of rows to remove.
    """
    if not _is_file(path):
        return
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # readable by its owner only
        with closing(sqlite3.connect(path, timeout=_WAIT_S)) as database, database:
            database.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")
            _check(database)
            database.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", news)
            database.executemany("DELETE FROM runs WHERE key = ?", [(key,) for key in removed])
    except OSError:
        return  # a directory that is only to be read
    except sqlite3.Error as error:
        _discard_if_damaged(path, error)


def _is_file(path: Path) -> bool:
    """The index is a file or missing: a link may lead to a foreign database.

    So may the file that SQLite goes back to, if a write was cut off.
    """
    files = (path, path.with_name(f"{path.name}-journal"))
    return all(
        not os.path.lexists(file) or (file.is_file() and not file.is_symlink()) for file in files
    )


def _check(database: sqlite3.Connection) -> None:
    """Check for other tables than the index: a view or a trigger would be carried out.

    Raises:
        sqlite3.DatabaseError: There is something else.
    """
    tables = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchmany(2)
    if tables not in ([], [(f"CREATE TABLE {_TABLE}",)]):
        raise sqlite3.DatabaseError("it is no index")


def _discard_if_damaged(path: Path, error: sqlite3.Error) -> None:
    # An operational error says that it is locked, not to be read, or has no table yet.
    if isinstance(error, sqlite3.OperationalError):
        return
    for file in (path, path.with_name(f"{path.name}-journal")):
        with suppress(OSError):
            file.unlink()
