"""Imports: the table of foreign formats that can be read as a trace.

A reader takes the path of a file, and returns records and its guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dig._util.files import GZIP
from dig._util.registry import Registry
from dig.errors import JournalError, SettingsError, TraceError
from dig.graph.records import Emit, Limits, Record, Run
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.journal.segments import is_run, missing

from .coding_sessions import is_session, is_subagent, read_session
from .inboxes import is_team, is_team_part, read_team
from .message_log import read_log
from .scribe import Guesses, blind_spot
from .source_files import head_of
from .source_files import read_text as read_text
from .span_rows import SpanRow, is_spans, read_rows
from .spans import as_run
from .trajectories import is_subagents, is_trajectory, read_trajectory

Reader = Callable[..., tuple[list[Record], Guesses]]


@dataclass(frozen=True)
class Format:
    """A foreign format.

    Attributes:
        read: Reads a file, given its path, and those of the files that it is read with.
        fits: Whether a file is of this format, given its path and the text of its first
            bytes, without blanks before it.
        parts: The ids of the runs that a file, given its path, holds parts of, so that files with
            a common id are read as one run; ``None``: each file is a run.
        is_part: Whether a file of this format is read with another that is there.
    """

    read: Reader
    fits: Callable[[Path, str], bool]
    parts: Callable[[Path], Iterable[str]] | None = None
    is_part: Callable[[Path], bool] = lambda path: False


def _span_rows(path: Path) -> list[SpanRow]:
    return read_rows(path, read_text(path))


def _join(*paths: Path) -> tuple[list[Record], Guesses]:
    from .joined_runs import join_runs  # no check needs it

    return join_runs(*paths)


LOG = "log"
FORMATS: Mapping[str, Format] = Registry(
    "formats",
    {
        LOG: Format(lambda path: read_log(path, read_text(path)), lambda path, head: True),
        "claude-code": Format(read_session, is_session, is_part=is_subagent),
        "claude-team": Format(read_team, is_team, is_part=is_team_part),
        "atif": Format(read_trajectory, is_trajectory, is_part=is_subagents),
        "runs": Format(
            _join,
            lambda path, head: is_trace(head),
            lambda path: (
                row.traceparent
                for row in read_records(path)
                if isinstance(row, Emit) and row.traceparent
            ),
        ),
        "spans": Format(
            lambda *paths: as_run(paths, [row for path in paths for row in _span_rows(path)]),
            lambda path, head: is_spans(head),
            lambda path: {row.id[0] for row in _span_rows(path)},
        ),
    },
)
"""The formats by name, tried in this order but for the log: what fits no other is read as one."""


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

    @property
    def not_looked_at(self) -> list[str]:
        """The invisible patterns of the source, a line for each reason."""
        run = self.records[0]
        limits = run.limits if isinstance(run, Run) else Limits()
        return [blind_spot(detail, limits) for detail in self.guesses.blind_details()]


def import_file(path: Path, format: str | None = None, more: Sequence[Path] = ()) -> Imported:
    """Read a recording of another program.

    Args:
        path: The file.
        format: One of `FORMATS`; ``None``: the one that the content fits.
        more: Further files of the same run, of the same format.

    Raises:
        SettingsError: There is no such format, or a run of it is one file.
        TraceError: The file cannot be read, or is not of this format.
    """
    for folder in (path, *more):
        if folder.is_dir() and not is_run(folder):
            raise missing(folder / TRACE)
    path, *more = (file / TRACE if file.is_dir() else file for file in (path, *more))
    name = format or _fitting(path, head_of(path))
    if name not in FORMATS:
        raise SettingsError(f"there is no format {name!r}; known are: {', '.join(FORMATS)}")
    if more and FORMATS[name].parts is None:
        raise SettingsError(f"{path} is read as {name}, of which each file is a run of its own")
    records, guesses = FORMATS[name].read(path, *more)
    return Imported(name, records, guesses)


def _fitting(path: Path, head: str) -> str:
    names = sorted(FORMATS, key=lambda name: name == LOG)
    return next(name for name in names if FORMATS[name].fits(path, head))


def is_trace(head: str) -> bool:
    """Whether a file with such a beginning is a trace of dig."""
    # A run's own words may look like any format; with quotation marks a key is no word.
    return '"kind":"run"' in head.partition("\n")[0].replace(" ", "")


def foreign_format(path: Path) -> str | None:
    """The format of another program's file; ``None``: a trace, or nothing known.

    Raises:
        TraceError: The file cannot be read.
    """
    if path.name.endswith((".dig.jsonl", f".dig.jsonl{GZIP}")) or not path.is_file():
        return None
    head = head_of(path)
    if is_trace(head):
        return None
    name = _fitting(path, head)
    return None if name == LOG else name


def joined(paths: Iterable[Path]) -> list[list[Path]]:
    """Group files with spans of the same trace, in order of the first files."""
    runs: list[tuple[list[Path], set[str]]] = []
    every = list(paths)
    for path in every:
        files, ids = [path], set[str]()
        try:
            name = foreign_format(path) if len(every) > 1 else None
            parts = FORMATS[name].parts if name else None
            ids = set(parts(path)) if parts else ids
        except TraceError:
            pass  # whoever reads the file says so
        for run in [run for run in runs if not ids.isdisjoint(run[1])] if ids else ():
            files, ids = run[0] + files, run[1] | ids
            runs.remove(run)
        runs.append((files, ids))
    return [files for files, _ in runs]


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
