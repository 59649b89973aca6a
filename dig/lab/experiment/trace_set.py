"""A set of traces to be handed on: runs of all settings, with and without failures.

The same settings make the same set, byte for byte: nothing in it depends on when or where it was
made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from dig.detectors.patterns import NAMES
from dig.errors import SettingsError, file_errors
from dig.tasks.run.arrange import arrange, make_simulation, make_task
from dig.traces.journal.journal import Journal

from .experiment_report import write
from .grid import Cell, Grid
from .markdown_table import SIMULATED_AGENTS, as_csv, settings_notes
from .results import Row
from .run import ExecutionOptions, Failed, Outcome, Progress, measure

CARD = "README.md"
INDEX = "index.csv"

_COLUMNS = (
    "task", "level", "size", "agents", "method", "seed", "outcome", "valid", "rmse", "seconds",
    "calls", "judge_calls", "records", "failures",
)  # fmt: skip


def make_set(grid: Grid, out: Path, progress: Progress = lambda finished, total: None) -> Outcome:
    """Make a set of traces.

    Args:
        grid: The grid that is run, in virtual time. Of each setting one run without alarms and
            one with some are kept: the first that there are among the grid's seeds.
        out: An empty directory, or one that is made; gets traces, index and card.
        progress: Takes how many runs are done, and how many there are.

    Returns:
        The rows of the traces that were kept.

    Raises:
        SettingsError: The directory is not empty or cannot be written, or the grid is not in
            virtual time.
    """
    if grid.speed is not None:
        raise SettingsError("a set that can be made again needs virtual time; leave `speed` out")
    with file_errors(out, "used"):
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise SettingsError(f"{out} is not empty; name another directory for the set")
    # `groupby` below sees only neighbours.
    cells = sorted(grid.cells(), key=_setting)
    rows: list[Row] = []
    failed: list[Failed] = []
    finished = 0
    for _, group in groupby(cells, _setting):
        same = list(group)
        for outcome in _first_of_each_kind(same):
            if isinstance(outcome, Failed):
                failed.append(outcome)
            else:
                rows.append(outcome)
                _record(next(cell for cell in same if cell.run.name == outcome.run), out)
        finished += len(same)
        progress(finished, len(cells))
    write(out / INDEX, _index(rows, out))
    write(out / CARD, _card(grid, rows))
    return Outcome(tuple(rows), tuple(failed))


def _setting(cell: Cell) -> tuple[str, int, int, str]:
    return (cell.run.task, cell.run.size, cell.run.agents, cell.run.method)


def _first_of_each_kind(cells: Iterable[Cell]) -> list[Row | Failed]:
    """The first run without alarms and the first with some, as far as there are any."""
    outcomes: dict[bool, Row | Failed] = {}
    for cell in cells:
        (outcome,) = measure((cell,), ExecutionOptions())
        if isinstance(outcome, Failed):
            return [outcome]
        outcomes.setdefault(outcome.alarms > 0, outcome)
        # One run of each kind is enough: the other seeds are not played.
        if len(outcomes) == 2:
            break
    return list(outcomes.values())


def _file(run: str) -> str:
    return f"{run}.dig.jsonl"


def _record(cell: Cell, out: Path) -> None:
    """Run a cell again, with the same result, and write the trace."""
    task = make_task(cell.run)
    arranged = arrange(cell.run, task)
    path = out / _file(cell.run.name)
    with closing(Journal(path, header=arranged.setup.header())) as journal:
        make_simulation(cell.run, task, journal, arrangement=arranged).run()


def _index(rows: Sequence[Row], out: Path) -> str:
    """A line for each trace: settings, findings, and a checksum."""
    lines: list[list[object]] = [["file", "sha256", *_COLUMNS, *NAMES, "said_by_judge"]]
    for row in rows:
        digest = sha256((out / _file(row.run)).read_bytes()).hexdigest()
        values = [getattr(row, column) for column in _COLUMNS]
        counts = [row.findings.get(pattern, 0) for pattern in NAMES]
        lines.append([_file(row.run), digest, *values, *counts, row.judged])
    return as_csv(lines)


def _card(grid: Grid, rows: Sequence[Row]) -> str:
    """The page about the set: content, making, and limits."""
    failing = sum(row.alarms > 0 for row in rows)
    patterns = Counter(pattern for row in rows for pattern in row.findings)
    listed = ", ".join(f"{pattern} in {count}" for pattern, count in sorted(patterns.items()))
    agents = SIMULATED_AGENTS if grid.is_simulated else "see `agents` below"
    notes = "\n".join(f"- {note}" for note in settings_notes(grid.settings(), rows))
    return f"""# A set of traces of teams at work

{len(rows)} runs of {agents}: {failing} with errors or warnings, {len(rows) - failing} without. Of
each task, size, team and method, one of each kind, as far as its seeds have both.

Findings by pattern: {listed or "none"}.

- Each file is a trace (`digmon check FILE`, `digmon graph FILE`), with a chain of checksums
  (`digmon verify FILE`); `{INDEX}` tells what is in it, and has its SHA-256.
- Made by `digmon experiment traces` of dig-monitor, in virtual time: the same settings give the
  same files, byte for byte.
{notes}

Simulated agents follow stated habits. How often they fail, and how healing helps them, says
nothing about any language model.
"""
