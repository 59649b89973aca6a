"""Removal and compression of old runs: finished run directories made by dig, and nothing else.

A directory that is in doubt stays: what was added to it, such as a note or a figure, may be missed.
"""

from __future__ import annotations

import gzip
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from dig._util.files import GZIP, checksum, open_file
from dig._util.redaction import masking_logger
from dig.errors import SettingsError, file_errors
from dig.traces.journal.durable_files import MODE, cannot, journal_errors, sync_file
from dig.traces.journal.journal import RESULT, SIDE
from dig.traces.journal.locking import lock
from dig.traces.journal.recovery import is_own_journal
from dig.traces.journal.segments import is_run, segments, trace_path

from .index import overview
from .summary import RunSummary, read_beside

_DAY_S = 86_400
_MADE = re.compile(
    r"trace\.dig\.jsonl(\.\d{6,})?(\.gz)?|blobs/[0-9a-f]{64}\.json|side\.json|result\.json"
    r"|report\.html|exchanges\.jsonl(\.incomplete)?"
)
"""The files that a run leaves, by their path in its directory."""

logger = masking_logger("dig")


@dataclass(frozen=True)
class StoredRun:
    """A run directory before pruning.

    Attributes:
        path: The directory.
        size: The bytes of its files.
        ended_s: The time of its last record, in seconds since 1970.
        stays: The reason why it is left alone, whatever its age; empty: it may go.
        summary: The summary by which that was decided.
    """

    path: Path
    size: int
    ended_s: float
    stays: str
    summary: RunSummary


def stored_runs(folder: Path) -> list[StoredRun]:
    """The run directories in a directory, the oldest first.

    Raises:
        SettingsError: The directory is a link or a run, so nothing in it is removed.
        TraceError: There is no such directory.
    """
    if folder.is_symlink() or is_run(folder):
        raise SettingsError(f"{folder} is a link, or one run: name a directory of runs")
    summaries = [it for it in overview(folder) if Path(it.path).is_dir()]
    origins = [read_beside(Path(it.path), SIDE).get("forked_from") for it in summaries]
    sources = {it.get("execution") for it in origins if isinstance(it, dict)}
    runs = [_stored(summary, sources) for summary in summaries]
    return sorted(runs, key=lambda run: (run.ended_s, run.path))


def _stored(summary: RunSummary, sources: set[object]) -> StoredRun:
    path = Path(summary.path)
    size, ended, strange = 0, 0.0, ""
    for place, folders, names in os.walk(path):
        for name in (*folders, *names):
            file = Path(place, name)
            relative, status = file.relative_to(path).as_posix(), file.lstat()
            size += status.st_size
            if relative.startswith("trace."):
                ended = max(ended, status.st_mtime)
            is_plain = file.is_dir() if name in folders else bool(_MADE.fullmatch(relative))
            if file.is_symlink() or not is_plain or (name in folders and relative != "blobs"):
                strange = strange or relative
    side = read_beside(path, SIDE)
    reasons = {
        "it is a link": path.is_symlink(),
        "it has not ended": summary.state != "ended",
        "it waits for a person": bool(summary.waits),
        "it was not made by dig": side.get("execution") != path.name or not is_own_journal(path),
        "it is not whole": not (path / RESULT).is_file(),
        f"it has {strange}": bool(strange),
        "a fork began from it": path.name in sources,
    }
    stays = next((reason for reason, holds in reasons.items() if holds), "")
    return StoredRun(path, size, ended, stays, summary)


def to_remove(
    runs: list[StoredRun], keep_days: float | None, keep_mb: float | None, now_s: float
) -> list[StoredRun]:
    """The runs over the age, and then the oldest runs over the size.

    Args:
        runs: The runs, the oldest first.
        keep_days: The age up to which a run stays; ``None``: any.
        keep_mb: The megabytes that all runs may have together; ``None``: any number.
        now_s: Seconds since 1970.
    """
    size, chosen = sum(run.size for run in runs), []
    for run in runs:
        is_old = keep_days is not None and now_s - run.ended_s > keep_days * _DAY_S
        is_over = keep_mb is not None and size > keep_mb * 1e6
        if not run.stays and (is_old or is_over):
            chosen.append(run)
            size -= run.size
    return chosen


def remove(run: StoredRun) -> bool:
    """Remove a run directory; false: in use, or changed since `stored_runs`.

    Raises:
        JournalError: It cannot be removed.
    """
    with _locked(run) as is_ours:
        if not is_ours:
            return False
        # Renamed first: a removal that is interrupted leaves nothing that looks like a run.
        grave = run.path.with_name(f".removed-{run.path.name}-{secrets.token_hex(3)}")
        with journal_errors("remove", run.path):
            run.path.rename(grave)
            shutil.rmtree(grave)  # it follows no link
    age = (time.time() - run.ended_s) / _DAY_S
    logger.info("dig: removed %s: %.0f days old, %.1f MB", run.path, age, run.size / 1e6)
    return True


def compress(run: StoredRun) -> int:
    """Compress the files of a run's trace; return the saved bytes.

    Raises:
        JournalError: A file cannot be written.
    """
    saved = 0
    with _locked(run) as is_ours:
        for file in [*segments(trace_path(run.path))] if is_ours else ():
            if not file.is_file():  # it is compressed
                continue
            packed = file.with_name(file.name + GZIP)
            part = packed.with_name(f"{packed.name}.{secrets.token_hex(4)}.part")
            try:
                _write_copy(file, part)
                status = file.stat()
                os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
                part.replace(packed)
                sync_file(file.parent)
                file.unlink()
            except OSError as error:
                part.unlink(missing_ok=True)
                raise cannot("compress", file, error) from None
            saved += status.st_size - packed.stat().st_size
    if saved:
        logger.info("dig: compressed %s, %.1f MB less", run.path, saved / 1e6)
    return saved


def _write_copy(file: Path, packed: Path) -> None:
    """Write a compressed copy to the disk, and compare the content."""
    with open(os.open(packed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb") as out:
        with open_file(file) as source, gzip.GzipFile("", "wb", 6, out, mtime=0) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        out.flush()
        os.fsync(out.fileno())
    with gzip.open(packed) as copy:
        if checksum(file) != file_digest(copy, "sha256").hexdigest():
            raise OSError("its copy is not the same")


@contextmanager
def _locked(run: StoredRun) -> Iterator[bool]:
    """Lock a run; false: a process writes to the run, or changed or removed it meanwhile."""
    with file_errors(run.path, "read"), ExitStack() as stack:
        try:
            file = stack.enter_context(open_file(trace_path(run.path)))
        except FileNotFoundError:
            yield False
        else:
            yield lock(file.fileno()) and _stored(run.summary, set()) == run
