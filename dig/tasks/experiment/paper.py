"""The paper's tables 2 to 5 with our figures, each beside the paper's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dig.detectors.patterns import NAMES

from .grid import Grid
from .intervals import Mean, mean
from .paper_figures import PAPER_PATTERNS, Figures, paper
from .results import Row
from .table import Table, TableCell, Value, settings_notes

METHOD_NAMES = {
    "mas": "MAS only", "watchdog": "MAS + watchdog", "retry": "MAS + retry",
    "judge": "MAS + judge", "dig": "MAS + DIG",
}  # fmt: skip

Measure = Callable[[Row], float | None]
"""Measures one run; ``None``: this run does not count."""

MEASURES: dict[str, Measure] = {
    "findings": lambda row: sum(row.findings.get(pattern, 0) for pattern in PAPER_PATTERNS),
    "errors": lambda row: row.errors,
    "warnings": lambda row: row.warnings,
    "notices": lambda row: row.notices,
    "RMSE": lambda row: row.rmse,
    "seconds": lambda row: row.seconds if row.valid else None,
    "valid": lambda row: float(row.valid),
}
"""What the tables have, by name. As in the paper, findings are those of its seven patterns, and
RMSE and time are of valid answers only."""

IN_PAPER: dict[str, Callable[[Figures], float]] = {
    "findings": lambda figures: figures.total,
    "RMSE": lambda figures: figures.rmse,
    "seconds": lambda figures: figures.seconds,
    "valid": lambda figures: figures.valid,
}

READING = (
    "Each cell: mean over seeds [95 % bootstrap interval], in brackets the paper's figure. RMSE "
    "and seconds only of runs with a valid answer; - if there was none."
)


@dataclass(frozen=True)
class PaperSetting:
    """The task and the team size of a row; the method and the level are apart."""

    task: str
    agents: int

    def rows(self, rows: Sequence[Row], level: str, method: str) -> list[Row]:
        """The runs of this setting, in order of their seeds."""
        wanted = (self.task, self.agents, level, method)
        found = [r for r in rows if (r.task, r.agents, r.level, r.method) == wanted]
        return sorted(found, key=lambda row: row.seed)


def settings(rows: Sequence[Row]) -> list[PaperSetting]:
    """The settings that there are: by team size, then by task."""
    found = {(row.agents, row.task): PaperSetting(row.task, row.agents) for row in rows}
    tasks = list(dict.fromkeys(row.task for row in rows))
    return [found[key] for key in sorted(found, key=lambda k: (k[0], tasks.index(k[1])))]


def levels(rows: Sequence[Row]) -> list[str]:
    """The levels of difficulty, the easiest first."""
    return list(dict.fromkeys(row.level for row in sorted(rows, key=lambda row: row.size)))


def measured(rows: Sequence[Row], name: str, measure: Measure) -> Mean | None:
    """The mean of a measure over some runs of one setting, level and method."""
    values = [value for row in rows if (value := measure(row)) is not None]
    first = rows[0] if rows else None
    label = first and f"{first.task} {first.level} {first.agents} {first.method} {name}"
    return mean(values, str(label))


def all_tables(grid: Grid, rows: Sequence[Row]) -> list[Table]:
    """Table 2, and for each level a table of findings by pattern (the paper's 3 to 5)."""
    notes = [READING, *settings_notes(grid.settings(), rows)]
    tables = [_overview(grid, rows, notes)]
    for number, level in enumerate(levels(rows), 3):
        tables.append(_by_pattern(grid, rows, level, number, notes))
    return tables


def _overview(grid: Grid, rows: Sequence[Row], notes: Sequence[str]) -> Table:
    shown, names = levels(rows), ("findings", "RMSE", "seconds", "valid")
    lines: list[list[TableCell]] = []
    for setting, method in _lines(grid, rows):
        line: list[TableCell] = [setting.agents, setting.task, METHOD_NAMES.get(method, method)]
        for name in names:
            for level in shown:
                line.append(_value(setting.rows(rows, level, method), name, MEASURES[name]))
        lines.append(line)
    columns = [f"{name} {level}" for name in names for level in shown]
    title = f"Table 2: all findings, RMSE, time and valid output rate{grid.agents_note}"
    return Table("table-2", title, ["agents", "task", "method", *columns], lines, notes)


def _by_pattern(
    grid: Grid, rows: Sequence[Row], level: str, number: int, notes: Sequence[str]
) -> Table:
    lines: list[list[TableCell]] = []
    shown = shown_patterns(rows)
    for setting, method in _lines(grid, rows):
        runs = setting.rows(rows, level, method)
        if not runs:
            continue
        line: list[TableCell] = [setting.agents, setting.task, METHOD_NAMES.get(method, method)]
        line += [_value(runs, pattern, count_of(pattern)) for pattern in shown]
        line += [_value(runs, name, measure) for name, measure in MEASURES.items()]
        lines.append([*line, _value(runs, "judged", lambda row: row.judged)])
    columns = [*shown, *MEASURES, "said by judge"]
    title = f"Table {number}: findings by pattern, RMSE and time, {level}{grid.agents_note}"
    sums = (
        f"findings: {'+'.join(PAPER_PATTERNS)}, as in the paper; errors, warnings, notices: the "
        "findings of all patterns, by severity."
    )
    heads = ["agents", "task", "method", *columns]
    return Table(f"table-{number}", title, heads, lines, [*notes, sums])


def _lines(grid: Grid, rows: Sequence[Row]) -> Iterator[tuple[PaperSetting, str]]:
    return ((setting, method) for setting in settings(rows) for method in grid.methods)


def shown_patterns(rows: Sequence[Row]) -> list[str]:
    """The patterns of the paper, and all others that were raised in some run."""
    raised = {pattern for row in rows for pattern, count in row.findings.items() if count}
    return [name for name in NAMES if name in raised.union(PAPER_PATTERNS)]


def count_of(pattern: str) -> Measure:
    """The measure that counts a pattern's findings."""
    return lambda row: row.findings.get(pattern, 0)


def _value(rows: Sequence[Row], name: str, measure: Measure) -> Value:
    if not rows:
        return Value(None)
    first, theirs = rows[0], None
    figures = paper(first.task, first.size, first.level, first.agents, first.method)
    if figures is not None:
        theirs = figures.findings.get(name)
        if name in IN_PAPER:
            theirs = IN_PAPER[name](figures)
    return Value(measured(rows, name, measure), theirs)
