"""Carries out the runs of an experiment in parallel, except runs with a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any

from dig._util.text import one_line
from dig.errors import DigError, RealTimeError, SettingsError, file_errors
from dig.runtime.result import STALLED, RunResult
from dig.runtime.workers import Workers
from dig.tasks.run.arrange import arrange, make_simulation, make_task
from dig.tasks.run.execute import INTERRUPTED, execute
from dig.tasks.run.measures import Counts
from dig.tasks.run.team_run import OWN, TeamRun
from dig.tasks.run.teams import in_virtual_time
from dig.tasks.task import Task
from dig.traces.usage import tokens

from .grid import Cell, Grid
from .results import Row, append_rows, read_rows

RESULTS = "results.jsonl"
TRACES = "traces"

ON_LOSS = "what was done before is kept: go on with the same command, and fewer --jobs"

GO_ON = "give more, and the same command goes on from here"

Batch = Sequence[Cell]
"""Runs with the same problem, which is made once."""

Progress = Callable[[int, int], None]
"""Takes how many runs are done, and how many there are."""


Tell = Callable[[str], None]
"""Takes a line."""


def ignore(line: str) -> None:
    """Do nothing."""


@dataclass
class Allowance:
    """A budget for runs in sequence.

    Attributes:
        max_tokens: The most tokens of all runs together; ``None``: no limit.
        max_usd: The most US dollars of all runs together; ``None``: no limit.
        tokens: Tokens used so far.
        usd: US dollars spent so far.
    """

    max_tokens: int | None = None
    max_usd: float | None = None
    tokens: float = 0
    usd: float = 0.0

    @property
    def used_up(self) -> str:
        """A sentence about the used-up budget; empty if there is budget left."""
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            spent = f"{self.tokens:,.0f} of {self.max_tokens:,} tokens"
        elif self.max_usd is not None and self.usd >= self.max_usd:
            spent = f"${self.usd:.4f} of ${self.max_usd:g}"
        else:
            return ""
        return f"the budget of the experiment is used up, {spent}: {GO_ON}"

    def spend(self, usage: Mapping[str, float]) -> None:
        """Subtract the usage of a run."""
        self.tokens += tokens(usage) or 0
        self.usd += usage.get("cost_usd", 0.0)

    def limit(self, run: TeamRun) -> TeamRun:
        """The same run, limited to the rest of the budget.

        Raises:
            SettingsError: Nothing is left.
        """
        if self.used_up:
            raise SettingsError(self.used_up)
        budget: dict[str, Any] = {}
        if self.max_tokens is not None:
            budget["max_tokens"] = int(self.max_tokens - self.tokens)
        if self.max_usd is not None:
            budget["max_usd"] = self.max_usd - self.usd
        return replace(run, options={**run.options, **budget}) if budget else run


@dataclass(frozen=True)
class ExecutionOptions:
    """Options of carrying out the runs of a grid.

    Attributes:
        speed: The clock's speed in real time; ``None``: virtual time.
        traces: The folder of run directories; ``None``: no traces are kept.
        allowance: The budget of all runs together.
        tell: Takes a line at once when a request to a language model fails; a function of a
            module, so that another process can import it.
    """

    speed: float | None = None
    traces: Path | None = None
    allowance: Allowance = field(default_factory=Allowance)
    tell: Tell = ignore


@dataclass(frozen=True)
class Failed:
    """A failed run, with the reason."""

    run: str
    why: str


@dataclass(frozen=True)
class Outcome:
    """The results of an experiment.

    Attributes:
        rows: The rows of its grid, in its order.
        failed: The runs that could not be carried out.
    """

    rows: tuple[Row, ...]
    failed: tuple[Failed, ...]


def carry_out(
    grid: Grid,
    out: Path,
    *,
    jobs: int = 1,
    keep: bool = False,
    progress: Progress = lambda finished, total: None,
    tell: Tell = ignore,
) -> Outcome:
    """Carry out the runs of a grid without results.

    Args:
        grid: The grid.
        out: A directory; results go to `results.jsonl` in it as they come.
        jobs: The number of processes that work at once.
        keep: Whether the traces are kept, in `traces`.
        progress: Takes how many runs are done, and how many there are.
        tell: See `ExecutionOptions`.

    Raises:
        SettingsError: There is no such task, or the directory cannot be used.
        KeyboardInterrupt: The user interrupted the experiment; finished runs are kept.
    """
    allowance = Allowance(grid.max_tokens, grid.max_usd)
    if allowance != Allowance() and jobs > 1:
        raise SettingsError("a budget is kept by one process; leave --jobs out, or make it 1")
    options = ExecutionOptions(
        grid.speed, out / TRACES if keep or grid.speed is not None else None, allowance, tell
    )
    return carry_out_cells(list(grid.cells()), out, options, jobs=jobs, progress=progress)


def carry_out_cells(
    cells: Sequence[Cell],
    out: Path,
    options: ExecutionOptions,
    *,
    jobs: int = 1,
    progress: Progress = lambda finished, total: None,
) -> Outcome:
    """Carry out runs of any sort, as `carry_out`; runs with the same problem are adjacent."""
    kinds: dict[Any, TeamRun] = {cell.run.method: cell.run for cell in cells}
    kinds |= {(c.run.task, c.run.size, c.run.data, c.run.agents_are): c.run for c in cells}
    for run in kinds.values():
        # An error about a task, a team or a method comes before anything is done.
        arranged = arrange(run, make_task(run))
        if options.speed is None:
            in_virtual_time(arranged.team)
    with file_errors(out, "made"):
        out.mkdir(parents=True, exist_ok=True)
    results = out / RESULTS
    rows_by_run = {row.run: row for row in read_rows(results)}
    for row in rows_by_run.values():
        # What earlier sessions of the experiment spent counts as well.
        options.allowance.spend(row.usage)
    missing = [cell for cell in cells if cell.run.name not in rows_by_run]
    failed: list[Failed] = []
    count = len(cells) - len(missing)
    progress(count, len(cells))
    with Workers(jobs, "the experiment", ON_LOSS) as workers:
        for measured in workers.each(partial(measure, options=options), _batches(missing, options)):
            rows = [outcome for outcome in measured if isinstance(outcome, Row)]
            failed += [outcome for outcome in measured if isinstance(outcome, Failed)]
            # At once, so that an interruption costs one batch at most.
            append_rows(results, rows)
            rows_by_run.update((row.run, row) for row in rows)
            count += len(measured)
            progress(count, len(cells))
            # In real time it would cost money to fail in the same way again.
            if failed and options.speed is not None:
                break
    return Outcome(
        tuple(rows_by_run[c.run.name] for c in cells if c.run.name in rows_by_run), tuple(failed)
    )


def _batches(cells: Iterable[Cell], options: ExecutionOptions) -> Iterator[Batch]:
    """In virtual time, runs with the same problem together; else each for itself."""
    if options.speed is not None:
        # In real time runs cost money, so each is saved as soon as it is there.
        return ((cell,) for cell in cells)
    return (tuple(group) for _, group in groupby(cells, _problem))


def _problem(cell: Cell) -> tuple[str, int, int, str | None]:
    return cell.run.task, cell.run.size, cell.run.seed, cell.run.data


def measure(batch: Batch, options: ExecutionOptions) -> list[Row | Failed]:
    """Carry out some runs with the same problem.

    Raises:
        RealTimeError: An agent cannot work in virtual time.
    """
    task: Task | None = None
    measured: list[Row | Failed] = []
    for cell in batch:
        try:
            # A task that brings agents brings new ones to each run, in case they keep a state.
            task = make_task(cell.run) if task is None or cell.run.agents_are == OWN else task
            measured.append(_measure_cell(cell, task, options))
        except RealTimeError:
            raise
        except Exception as error:  # one run must not end an experiment
            reason = str(error) if isinstance(error, DigError) else repr(error)
            measured.append(Failed(cell.run.name, one_line(reason)))
    return measured


def _measure_cell(cell: Cell, task: Task, options: ExecutionOptions) -> Row | Failed:
    """Measure a run as a row; a run cut short, by the budget or a wrong key, is `Failed`.

    Raises:
        KeyboardInterrupt: The user interrupted the run.
    """
    counts, run = Counts(), options.allowance.limit(cell.run)
    if options.speed is None and options.traces is None:
        result = make_simulation(run, task, counts).run()
    else:
        traces = options.traces or Path()
        result = execute(
            run, traces, options.speed, follow=counts, task=task, tell=options.tell
        ).result
    options.allowance.spend(counts.sums)
    # `execute` ends the run in order; now the experiment has to end.
    if result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    # A team that stalls is a result; a run that was cut short from outside is none.
    if result.outcome in ("stopped", "error") and not result.reason.startswith(STALLED):
        return Failed(run.name, options.allowance.used_up or result.reason)
    row = _row(cell, task, options, result, counts)
    if row.rmse is not None and not isfinite(row.rmse):  # a row that nobody could read again
        return Failed(run.name, f"the error of its answer is {row.rmse}, which is no number")
    return row


def _row(
    cell: Cell, task: Task, options: ExecutionOptions, result: RunResult, counts: Counts
) -> Row:
    run, score = cell.run, counts.check_evidence(task.score(result.answer))
    valid = score.valid if score else result.outcome == "submitted"
    return Row(
        run=run.name,
        task=run.task,
        size=run.size,
        level=cell.level,
        agents=run.agents,
        agents_are=run.agents_are,
        data_are=task.data,
        method=run.method,
        seed=run.seed,
        clock="virtual" if options.speed is None else f"real time x {options.speed:g}",
        outcome=result.outcome,
        reason=result.reason,
        valid=valid,
        rmse=score.rmse if score else None,
        complete=valid and (score is None or score.complete is not False),
        seconds=result.seconds,
        calls=counts.calls,
        judge_calls=counts.judge_calls,
        usage=dict(counts.sums),
        findings=result.raised(),
        worth=result.worth,
        heals=result.heals,
        notes=counts.notes,
        failures=sum(result.failures.values()),
        records=result.records,
    )
