"""The paper's tables 2 to 5 with our figures, each beside the paper's own."""

from __future__ import annotations

from collections.abc import Sequence

from .grid import Grid
from .markdown_table import Table, TableCell, Value
from .paper_figures import PAPER_PATTERNS
from .row_measures import (
    COMPLETE,
    FINDINGS,
    RMSE,
    SECONDS,
    VALID,
    GridSetting,
    Measure,
    count_of,
    shown_measures,
    shown_patterns,
    title,
)
from .samples import Samples

READING = (
    "Each cell: mean over seeds [95 % interval], in brackets the paper's figure. RMSE and seconds "
    "only of runs with a valid answer; - if there was none."
)
JUDGED = Measure("said by judge", lambda row: row.judged)


def paper_tables(grid: Grid, samples: Samples, notes: Sequence[str]) -> list[Table]:
    """Table 2, and for each level a table of findings by pattern (the paper's 3 to 5)."""
    notes = [READING, *notes]
    tables = [_overview(grid, samples, notes)]
    for number, level in enumerate(samples.levels, 3):
        tables.append(_by_pattern(grid, samples, level, number, notes))
    return tables


def _overview(grid: Grid, samples: Samples, notes: Sequence[str]) -> Table:
    """All levels of a task and a team size on the same line."""
    measures = shown_measures(samples.rows, (FINDINGS, RMSE, SECONDS, VALID, COMPLETE))
    levels = samples.levels
    lines: list[list[TableCell]] = []
    for agents, task in dict.fromkeys(
        (setting.agents, setting.task) for setting in samples.settings
    ):
        of_level = {
            setting.level: setting
            for setting in samples.settings
            if (setting.agents, setting.task) == (agents, task)
        }
        for method in grid.methods:
            values = [
                value_of(samples, of_level.get(level), method, measure)
                for measure in measures
                for level in levels
            ]
            lines.append([agents, task, title(method), *values])
    columns = [f"{measure.name} {level}" for measure in measures for level in levels]
    heading = f"Table 2: all findings, RMSE, time, valid and complete answers{grid.agents_note}"
    return Table("table-2", heading, ["agents", "task", "method", *columns], lines, notes)


def _by_pattern(
    grid: Grid, samples: Samples, level: str, number: int, notes: Sequence[str]
) -> Table:
    patterns = [count_of(pattern) for pattern in shown_patterns(samples.rows)]
    measures = [*patterns, *shown_measures(samples.rows), JUDGED]
    lines: list[list[TableCell]] = [
        [
            setting.agents,
            setting.task,
            title(method),
            *(value_of(samples, setting, method, measure) for measure in measures),
        ]
        for setting in samples.settings
        for method in grid.methods
        if setting.level == level and samples.runs(setting, method)
    ]
    heading = f"Table {number}: all measures, and findings by pattern, {level}{grid.agents_note}"
    sums = (
        f"findings: {'+'.join(PAPER_PATTERNS)}, as in the paper; errors, warnings, notices: the "
        "findings of all patterns, by severity. complete: valid, and about all of the problem as "
        "far as the task's score says. notes: those with words that agents were shown."
    )
    columns = ["agents", "task", "method", *(measure.name for measure in measures)]
    return Table(f"table-{number}", heading, columns, lines, [*notes, sums])


def value_of(samples: Samples, setting: GridSetting | None, method: str, measure: Measure) -> Value:
    """The mean of a measure in a setting, beside the paper's figure."""
    # Runs may be missing: an experiment can be interrupted, and its report written.
    if setting is None or not samples.runs(setting, method):
        return Value(None)
    return Value(samples.mean(setting, method, measure), measure.figure(setting, method))
