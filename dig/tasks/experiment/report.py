"""Writes down what came of an experiment: tables as Markdown and CSV, and charts.

One table tells, cell by cell, whether the differences between methods go the way they go in the
paper. Runs with the same seed have the same problem, so differences are taken seed by seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from dig.errors import file_errors
from dig.traces.journal.files import write_file

from .charts import draw, is_possible
from .grid import Grid
from .intervals import Mean, mean
from .paper import IN_PAPER, MEASURES, METHOD_NAMES, PaperSetting, all_tables, levels, settings
from .paper_figures import paper
from .results import Row
from .table import Table, TableCell, settings_notes

ALL = "tables.md"
COMPARED = (("dig", "mas"), ("judge", "mas"), ("dig", "judge"))

READING = (
    "Of each cell: whether the difference of the means has the paper's sign. n.s.: its 95 % "
    "bootstrap interval over seeds (paired) contains zero; no claim: the paper has no difference; "
    "no data: no seed has what is compared in both. With so many cells some differ by chance: of "
    "twenty without any difference, about one does not say n.s."
)


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
    with file_errors(path, "written"):
        write_file(path, text.encode(), mode=0o666)
    return path


def difference(rows: Sequence[Row], others: Sequence[Row], name: str, label: str) -> Mean | None:
    """The mean difference of a measure over the seeds that both have it for."""
    measure = MEASURES[name]
    theirs = {row.seed: measure(row) for row in others}
    pairs = [(measure(row), theirs.get(row.seed)) for row in rows]
    return mean([a - b for a, b in pairs if a is not None and b is not None], label)


def directions(grid: Grid, rows: Sequence[Row]) -> Table:
    """A line for each setting and pair of methods, a column for each measure."""
    lines: list[list[TableCell]] = []
    counted: Counter[str] = Counter()
    for setting in settings(rows):
        for level in levels(rows):
            for pair in COMPARED:
                if set(pair) <= set(grid.methods):
                    verdicts = [_verdict(rows, setting, level, pair, name) for name in IN_PAPER]
                    counted.update(verdict.split(" (")[0] for verdict in verdicts)
                    names = [METHOD_NAMES[method] for method in pair]
                    lines.append([setting.agents, setting.task, level, *names, *verdicts])
    total = ", ".join(f"{what} {counted[what]}" for what in sorted(counted))
    columns = ["agents", "task", "level", "method", "compared with", *IN_PAPER]
    notes = [READING, f"In all: {total}.", *settings_notes(grid.settings(), rows)]
    title = f"Direction of the differences, compared with the paper{grid.agents_note}"
    return Table("directions", title, columns, lines, notes)


def _verdict(
    rows: Sequence[Row], setting: PaperSetting, level: str, pair: tuple[str, str], name: str
) -> str:
    one, other = (setting.rows(rows, level, method) for method in pair)
    if not one or not other:
        return "no data"
    label = f"{setting.task} {level} {setting.agents} {pair} {name}"
    ours = difference(one, other, name, label)
    if ours is None:
        return "no data"
    shown = f" ({ours.mean:+.2f})"
    figures = [paper(r.task, r.size, r.level, r.agents, r.method) for r in (one[0], other[0])]
    if figures[0] is None or figures[1] is None:
        return ("lower", "n.s.", "higher")[ours.sign + 1] + shown
    theirs = IN_PAPER[name](figures[0]) - IN_PAPER[name](figures[1])
    if ours.sign == 0:
        return "n.s." + shown
    if theirs == 0:
        return "no claim" + shown
    return ("agrees" if (theirs > 0) == (ours.sign > 0) else "disagrees") + shown
