"""Writes the report of an experiment: tables as Markdown and CSV, and charts.

What is in all tables stands above them in words: the headline, where DIG is no better than a
rival, and whether the differences go the way they go in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dig.errors import file_errors
from dig.traces.journal.durable_files import write_file

from . import effects
from .charts import draw, is_possible
from .grid import Grid
from .markdown_table import Table, settings_notes
from .paper import paper_tables
from .results import Row
from .row_measures import BASELINE, HEALING, RMSE, shown_measures
from .samples import Pool, Samples

ALL = "tables.md"

MADE_BY = "Made by `digmon experiment`; docs/lab/experiments.md of dig-monitor explains it."

Words = Mapping[str, Sequence[str]]
"""Sentences by their heading."""

HEADLINE = "In short"
NO_BETTER = "Where dig is no better than a rival, or costs more"
NOTHING = "Nowhere: dig is better than each rival in each measure, and costs no more."
PAPER = "The paper's directions, all tasks and levels together"
RELATIVE = (
    "RMSE, relative: as a part of the mean RMSE of all runs with the same task and level, so that "
    "tasks can be taken together."
)


def write_report(grid: Grid, rows: Sequence[Row], out: Path) -> tuple[list[Path], list[str]]:
    """Write all tables and, if matplotlib is there, all charts.

    Returns:
        What was written, and the headline.

    Raises:
        SettingsError: A file cannot be written.
    """
    samples = Samples(rows)
    tables, words = all_tables(grid, samples)
    written = write_tables(tables, out, words)
    # Tables are written without matplotlib, too.
    charts = draw(grid, samples, out) if rows and is_possible() else []
    return [*written, *charts], [*words.get(HEADLINE, ())]


def all_tables(grid: Grid, samples: Samples) -> tuple[list[Table], Words]:
    """Make all tables of a grid, and the sentences about them."""
    rows, methods = samples.rows, effects.pairs(grid.methods)
    notes = [*effects.quick_note(len(grid.seeds)), *settings_notes(grid.settings(), rows)]
    measures = shown_measures(rows)
    relative = samples.relative_rmse()
    # Tasks have errors of different sizes; together they are taken as parts of their mean.
    together = [relative if measure is RMSE else measure for measure in measures]
    pooled = effects.compare(samples, samples.pools(), methods, together)
    single = effects.compare(
        samples, [Pool((setting,)) for setting in samples.settings], methods, measures
    )
    rivals = [pair for pair in methods if pair[0] in HEALING and pair[1] != BASELINE]
    words = {
        HEADLINE: effects.headline(samples, grid.methods),
        NO_BETTER: effects.shortcomings(pooled, rivals) or ([NOTHING] if rivals and rows else []),
        PAPER: effects.paper_in_words(pooled),
    }
    heading = f"Effects, all tasks and levels together{grid.agents_note}"
    tables = [
        effects.effects_table("effects", heading, pooled, [RELATIVE, *notes]),
        *paper_tables(grid, samples, notes),
        effects.effects_table(
            "effects-by-setting", f"Effects in each setting{grid.agents_note}", single, notes
        ),
    ]
    return tables, {heading: lines for heading, lines in words.items() if lines}


def write_tables(tables: Iterable[Table], out: Path, words: Words) -> list[Path]:
    """Write tables: each as CSV, and all in a common file of Markdown.

    Args:
        tables: The tables.
        out: The directory.
        words: The text above the tables.
    """
    tables = list(tables)
    above = "".join(
        f"**{heading}**\n\n" + "".join(f"- {line}\n" for line in lines) + "\n"
        for heading, lines in words.items()
    )
    text = "\n".join([f"# Tables\n\n{MADE_BY}\n\n{above}", *(table.markdown() for table in tables)])
    written = [write(out / ALL, text)]
    return [*written, *(write(out / f"{table.name}.csv", table.csv()) for table in tables)]


def write(path: Path, text: str) -> Path:
    """Write a file in a single step, so that nobody ever reads half a file.

    Raises:
        SettingsError: The file cannot be written.
    """
    with file_errors(path, "written"):
        write_file(path, text.encode(), mode=0o666)
    return path
