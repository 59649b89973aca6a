"""Writes down what came of an experiment: tables as Markdown and CSV, and charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from dig.errors import SettingsError
from dig.traces.journal.files import write_file

from .charts import draw, is_possible
from .directions import directions
from .grid import Grid
from .paper import all_tables
from .results import Row
from .table import Table

ALL = "tables.md"


def write_report(grid: Grid, rows: Sequence[Row], out: Path) -> list[Path]:
    """Write all tables and, if matplotlib is there, all charts.

    Returns:
        What was written.

    Raises:
        SettingsError: A file cannot be written.
    """
    tables = [*all_tables(grid, rows), directions(grid, rows)]
    return [*write_tables(tables, out), *(draw(grid, rows, out) if rows and is_possible() else ())]


def write_tables(tables: Iterable[Table], out: Path) -> list[Path]:
    """Write tables: each as CSV, and all of them in one file of Markdown."""
    tables = list(tables)
    text = "\n".join(["# Tables\n", *(table.markdown() for table in tables)])
    written = [write(out / ALL, text)]
    return [*written, *(write(out / f"{table.name}.csv", table.csv()) for table in tables)]


def write(path: Path, text: str) -> Path:
    """Write a file in one step, so that nobody ever reads half of it.

    Raises:
        SettingsError: It cannot be written.
    """
    try:
        write_file(path, text.encode(), mode=0o666)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror or error}") from None
    return path
