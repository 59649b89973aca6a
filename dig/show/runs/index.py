"""An overview of the runs in a directory, quick the second time: a disposable index.

The traces are the truth. The index, a checksum and a JSON object, only spares reading them again:
its row for a run is valid as long as the run's files have the size and the time that they had. If
it is missing, damaged or not to be written, the overview is the same, only slower.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from dig._util.files import read_file, stored_path
from dig._version import __version__
from dig.errors import trace_errors
from dig.traces.journal.durable_files import write_file
from dig.traces.journal.journal import RESULT, SIDE
from dig.traces.journal.segments import TRACE, is_run, segments

from .summary import RunSummary, note_path, stored_state, summarise

INDEX = ".index.json"
_SUFFIX = ".dig.jsonl"
_VERSION = 10

Row = tuple[str, RunSummary]
"""A stamp, and a summary."""


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
    paths, stored = run_paths(folder), _load(folder / INDEX)
    summaries: list[RunSummary] = []
    rows: dict[str, Row] = {}
    for path in paths:
        stamp, row = _stamp(path), stored.get(path.name)
        summary = row[1] if row is not None and row[0] == stamp else None
        # A writer may die without a change to a file, and the verdict depends on the state.
        is_open = summary is not None and summary.state in ("in progress", "cut off")
        if summary is None or (is_open and summary.state != stored_state(path)):
            summary = summarise(path)
        if stamp == _stamp(path):  # it did not grow while it was read
            rows[path.name] = (stamp, summary)
        summaries.append(replace(summary, path=str(path)))  # the directory may have been moved
    if rows != stored:
        # A directory that is only to be read has no index, and is read whole each time.
        with suppress(OSError):
            index = {name: (stamp, summary.to_json()) for name, (stamp, summary) in rows.items()}
            body = json.dumps(index).encode()
            write_file(folder / INDEX, b"\n".join((_digest(body), body)))
    return summaries


def run_paths(folder: Path) -> list[Path]:
    """The run directories and trace files in a directory, by name; none that is hidden.

    Raises:
        TraceError: There is no such directory.
    """
    with trace_errors(folder):
        return sorted(
            path
            for path in folder.iterdir()
            if not path.name.startswith(".")
            and (path.is_file() if path.name.endswith(_SUFFIX) else is_run(path))
        )


def _stamp(path: Path) -> str:
    """A text for the state of a run's files and the version of the reader."""
    first = path if path.is_file() else path / TRACE
    files = [*map(stored_path, segments(first)), note_path(path)]
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


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).hexdigest().encode()


def _load(path: Path) -> dict[str, Row]:
    """The rows of the index by the names of runs; none, if it is missing, damaged or another's."""
    try:
        digest, _, body = read_file(path).partition(b"\n")
        index = json.loads(body) if digest == _digest(body) else {}
        return {name: (stamp, RunSummary(**fields)) for name, (stamp, fields) in index.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
