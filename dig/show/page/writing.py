"""A report: a stored run as an HTML file, to be opened from disk or mailed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dig._util.text import safe_text
from dig.show.cause import KnownCause
from dig.show.compare.difference import first_difference
from dig.traces.journal.durable_files import journal_errors, write_file, write_output
from dig.traces.journal.reader import feed_records, read_lines

from .about import page_head
from .html_page import ShownRun, report_page
from .rows import MOST_TEXT, Row, Rows, pack, shorten

NAME = "report.html"
MOST_SAID, LEAST_SAID = 6_000_000, 400_000
"""Characters of all long texts together in one report; they are not cut below the least."""
MOST_BYTES = 4_800_000
"""The size that a report should not exceed, so that it can be mailed."""


@dataclass(frozen=True)
class Report:
    """A written report.

    Attributes:
        records: The number of records that it shows.
        cut: The number of characters after which payloads are cut; 0: it has no payloads.
    """

    path: Path
    bytes: int
    records: int
    cut: int


def write_report(
    run: Path,
    out: Path | None = None,
    *,
    payloads: bool = True,
    twin: Path | None = None,
    cause: KnownCause | None = None,
) -> Report:
    """Write the report of a stored run.

    Args:
        run: A run directory or trace file.
        out: The file; by default `report.html` in the run directory, or `NAME.html` beside a trace.
        payloads: Whether the report contains payloads; by default it does.
        twin: Another run of the same team, which stands below it; by default none.
        cause: What a diagnosis names; by default nothing.

    Raises:
        TraceError: A trace cannot be read or breaks a rule; the line is named.
        JournalError: The file cannot be written.
    """
    shown_run = _read(run, payloads, cause)
    shown_twin = None
    if twin:
        shown_twin = replace(_read(twin, payloads), difference=first_difference(run, twin))
    data, cut = _compress(shown_run, shown_twin, payloads=payloads)
    name = run.name.removesuffix(".jsonl").removesuffix(".dig") + ".html"
    path = out or (run / NAME if run.is_dir() else run.with_name(name))
    _write(path, data, is_named=out is not None)
    return Report(path, len(data), shown_run.head["records"], cut)


def write_page(head: dict[str, Any], rows: list[Row], out: Path) -> Report:
    """Write a page of rows from another source than a run.

    Args:
        head: The data of its head (see `about`); `open` is the view that is shown first, as the
            address of a page tells it.
        rows: The rows.
        out: The file.

    Raises:
        JournalError: The file cannot be written.
    """
    data, cut = _compress(ShownRun(rows[0]["run"], head, rows))
    _write(out, data, is_named=True)
    return Report(out, len(data), head["records"], cut)


def _write(path: Path, data: bytes, *, is_named: bool) -> None:
    with journal_errors("write", path):
        write_output(path, data) if is_named else write_file(path, data)


def comparison(run: Path, twin: Path, runs: str) -> bytes:
    """The page of two runs, the second below the first.

    Args:
        run: The run directory or trace file of the upper one.
        twin: That of the lower one.
        runs: The address of the list of runs to go back to.

    Raises:
        TraceError: A trace cannot be read or breaks a rule; the line is named.
    """
    upper, lower = (_read(path, is_local=True) for path in (run, twin))
    lower = replace(lower, difference=first_difference(run, twin))
    return _compress(upper, lower, runs)[0]


def _read(
    run: Path, payloads: bool = True, cause: KnownCause | None = None, *, is_local: bool = False
) -> ShownRun:
    """Read a run; detected findings come last if the trace has no rows of findings."""
    first = next(read_lines(run))
    journal = first.row.get("journal")  # of an imported run, a journal without detectors
    has_all = isinstance(journal, dict) and bool(journal.get("detectors"))
    maker = Rows(MOST_TEXT if payloads else 0, has_all=has_all)
    rows = [pack(row) for row in feed_records(run, maker.of, payloads=payloads)]
    # A report is mailed: a path would tell about the machine, and be of no use on another.
    place = safe_text(run if is_local else run.resolve().name)
    head = page_head(run, maker.follower, place=place, private=not payloads, cause=cause)
    detected = [] if maker.has_findings else maker.detected
    return ShownRun(first.row["run"], {**head, "records": len(rows)}, [*rows, *detected])


def _compress(
    shown: ShownRun, twin: ShownRun | None = None, runs: str = "", *, payloads: bool = True
) -> tuple[bytes, int]:
    """The page, and the number of characters after which payloads are cut."""
    budget = MOST_SAID
    while True:  # the size is only known when the texts are compressed
        most, chars = shorten([*shown.rows, *(twin.rows if twin else ())], budget)
        cut = most if payloads else 0
        headed = replace(shown, head={**shown.head, "cut": cut})
        data = report_page(headed, twin, runs).encode()
        # Where there are many records with few words, to cut these again and again saves nothing.
        if len(data) <= MOST_BYTES or min(budget, chars) <= LEAST_SAID:
            return data, cut
        budget = min(budget, chars) // 2
