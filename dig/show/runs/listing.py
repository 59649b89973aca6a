"""Lists of runs: filters, order, and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from dig._util.text import counted, name, one_line
from dig.graph.words import seconds
from dig.traces.usage import tokens

from .summary import RunSummary, figures_text, grade


def _alarms(run: RunSummary) -> int:
    return run.worth.get("error", 0) + run.worth.get("warning", 0)


SORTS: dict[str, Callable[[RunSummary], Any]] = {
    "date": lambda run: run.began,
    "name": lambda run: run.name,
    "task": lambda run: None if run.task is None else str(run.task),
    "method": lambda run: run.method,
    "agents": lambda run: run.agents,
    "outcome": lambda run: run.status,
    "verdict": lambda run: run.ending,
    "findings": lambda run: sum(run.findings.values()),
    "alarms": _alarms,
    "errors": lambda run: run.worth.get("error", 0),
    "score": lambda run: grade(run.score),
    "tokens": lambda run: tokens(run.cost),
    "time": lambda run: run.seconds,
}
"""The keys that a list can be sorted by; runs of which the key is not known come last."""


@dataclass(frozen=True)
class RunFilter:
    """Conditions on the runs of a directory; ``None`` and empty fields are no conditions.

    Attributes:
        task: What the team worked on.
        method: What was done about failures.
        outcome: How the run ended, or `in progress`, `cut off` or `broken`.
        patterns: What must all have been raised.
        agents: How many agents there were.
        verdict: The end in a word or two, `Got stuck` for instance.
        agent: Who must have a part in what went wrong.
    """

    task: str | None = None
    method: str | None = None
    outcome: str | None = None
    patterns: tuple[str, ...] = ()
    agents: int | None = None
    verdict: str | None = None
    agent: str | None = None

    def has(self, run: RunSummary) -> bool:
        """The filter lets a run pass."""
        keys = ("task", "method", "outcome", "agents")
        return (
            all(getattr(self, key) in (None, SORTS[key](run)) for key in keys)
            and (self.verdict is None or self.verdict.casefold() == run.ending.casefold())
            and all(run.findings.get(pattern) for pattern in self.patterns)
            and (self.agent is None or self.agent in run.who)
        )


def sort_runs(runs: Iterable[RunSummary], by: str, *, reverse: bool = False) -> list[RunSummary]:
    """Sort runs; runs without a value come last.

    Args:
        runs: The runs.
        by: One of `SORTS`.
        reverse: Whether to sort the other way round; by default not.
    """
    key, listed = SORTS[by], list(runs)
    sortable = [run for run in listed if key(run) is not None]
    unknown = [run for run in listed if key(run) is None]
    return sorted(sortable, key=lambda run: (key(run), run.name), reverse=reverse) + unknown


# --- as a table ---


def _date(run: RunSummary) -> str:
    date = (run.began or "")[:10]
    is_told = run.name.startswith(date.replace("-", ""))  # an execution id begins with it
    return "" if is_told else name(date)


_COLUMNS: dict[str, Callable[[RunSummary], str]] = {
    "run": lambda run: one_line(run.name, 80),
    "date": _date,
    "task": lambda run: name(run.task or run.team) if run.task or run.team else "",
    "method": lambda run: name(run.method) if run.method else "",
    "agents": lambda run: str(run.agents or ""),
    "ended": lambda run: run.ending,
    "waiting": lambda run: str(len(run.waits) or ""),
    "alarms": lambda run: str(_alarms(run) or ""),
    "findings": lambda run: " ".join(f"{name(p)}:{n}" for p, n in sorted(run.findings.items())),
    "score": lambda run: figures_text(run.score),
    "time": lambda run: seconds(round(run.seconds * 1_000_000)) if run.records else "",
    "tokens": lambda run: "" if (n := tokens(run.cost)) is None else f"{n:,.0f}",
}
_COMMON = ("task", "method")
_RIGHT = ("agents", "waiting", "alarms", "score", "time", "tokens")
_LEAST_NEEDED = ("tokens", "time", "date", "agents", "method", "score", "task")
_MAY_BE_CUT = ("task", "method", "findings")
_LEAST_WIDTH = 16
"""To which a cell is cut before a column is left out."""


def print_list(console: Console, runs: Sequence[RunSummary]) -> None:
    """Print runs as a table, a line for each; common values of all runs stand below.

    Where it is too wide, columns move together, long cells are cut, and columns that are least
    needed left out; what a run has lost by that stands below its line.
    """
    cells = {label: [column(run) for run in runs] for label, column in _COLUMNS.items()}
    same = {k: cells[k][0] for k in _COMMON if len(set(cells[k])) == 1}
    shown = {k: column for k, column in cells.items() if k not in same and any(column)}
    widths, gap = _fit_columns(shown, console.width)
    console.print(_line({k: k for k in widths}, widths, gap, "bold"), soft_wrap=True)
    for n in range(len(runs)):
        row = {k: column[n] for k, column in shown.items()}
        console.print(_line(row, widths, gap), soft_wrap=True)
        lost_cells = [f"{k} {text}" for k, text in row.items() if cell_len(text) > widths.get(k, 0)]
        for line in wrap(", ".join(lost_cells), max(8, console.width - 2)):
            console.print(Text(f"  {line}", "dim"), soft_wrap=True)
        for text in (runs[n].headline if runs[n].grade == "bad" else "", runs[n].note):
            if text:
                console.print(Text(f"  {one_line(text)}"), soft_wrap=True)
    for run in runs:
        if run.problem:
            console.print(Text(f"broken: {one_line(run.problem)}"), soft_wrap=True)
    console.print(Text(_foot(len(runs), same)), soft_wrap=True)
    if simulated := sum(run.agents_are == "simulated" for run in runs):
        console.print(Text(f"{simulated} of {len(runs)} with simulated agents"), soft_wrap=True)


def waiting_rows(runs: Iterable[RunSummary]) -> list[dict[str, Any]]:
    """Activations waiting for a person in some runs, as rows, the longest wait first."""
    rows = [{"run": run.name, **wait} for run in runs for wait in run.waits]
    return sorted(rows, key=lambda row: (row["since"] is None, row["since"] or "", row["since_s"]))


def waiting_text(row: Mapping[str, Any]) -> str:
    """A wait for a person, in a line."""
    moment = row["since"] or f"{row['since_s']:.1f} s after the beginning"
    request = f": {row['request']}" if row["request"] else ""
    return one_line(f"since {moment}: `{name(row['agent'])}` of run {name(row['run'])}{request}")


def _line(row: Mapping[str, str], widths: Mapping[str, int], gap: int, style: str = "") -> Text:
    cells = []
    for label, width in widths.items():
        cell = Text(row[label], overflow="ellipsis")
        cell.align("right" if label in _RIGHT else "left", width)
        cells.append(cell.plain)
    return Text((" " * gap).join(cells).rstrip(), style)


def _fit_columns(shown: Mapping[str, Sequence[str]], room: int) -> tuple[dict[str, int], int]:
    """The columns with room, by width, and the gap between columns."""
    full_widths = {k: max(map(cell_len, (k, *column))) for k, column in shown.items()}
    gap = 2 if _excess(full_widths, room, 2) <= 0 else 1
    widths = dict(full_widths)
    _cut(widths, _MAY_BE_CUT, _LEAST_WIDTH, room, gap)
    for label in _LEAST_NEEDED:
        if _excess(widths, room, gap) > 0:
            widths.pop(label, None)
    # Columns that were left out give their room to the others, so these are fitted once more.
    fitted_widths = {k: full_widths[k] for k in widths}
    # Texts that can be guessed from their beginning are cut first, figures last.
    for labels in (_MAY_BE_CUT, ("run",), tuple(fitted_widths)):
        _cut(fitted_widths, labels, 1, room, gap)
    return fitted_widths, gap


def _excess(widths: Mapping[str, int], room: int, gap: int) -> int:
    return sum(widths.values()) + gap * (len(widths) - 1) - room


def _cut(widths: dict[str, int], labels: Sequence[str], least: int, room: int, gap: int) -> None:
    """Make the widest of some columns narrower until all fit, or none can be narrower."""
    present = [label for label in labels if label in widths]
    while present and _excess(widths, room, gap) > 0:
        # The widest column gives way, a cell at a time.
        widest = max(present, key=lambda label: widths[label])
        if widths[widest] <= least:
            return
        widths[widest] -= 1


def _foot(count: int, same: Mapping[str, str]) -> str:
    common = [f"{label} {value}" for label, value in same.items() if value]
    with_them = ", all with " if count > 1 else ", with "
    return with_them.join([counted(count, "run"), *([", ".join(common)] if common else [])])
