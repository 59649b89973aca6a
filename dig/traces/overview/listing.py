"""Runs in a list: which of them, in what order, and as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dig.plain import counted, name, one_line
from dig.traces.words import seconds

from .cost import tokens
from .summary import RunSummary, grade

Key = Callable[[RunSummary], Any]


def _status(run: RunSummary) -> str:
    return run.outcome or run.state if run.state in ("ended", "cut off") else run.state


SORTS: dict[str, Key] = {
    "date": lambda run: run.began,
    "name": lambda run: run.name,
    "task": lambda run: None if run.task is None else str(run.task),
    "method": lambda run: run.method,
    "agents": lambda run: run.agents,
    "outcome": _status,
    "findings": lambda run: sum(run.findings.values()),
    "score": lambda run: grade(run.score),
    "tokens": lambda run: tokens(run.cost),
    "time": lambda run: run.seconds,
}
"""What a list can be sorted by; runs of which it is not known come last."""


@dataclass(frozen=True)
class Selection:
    """Which runs of a directory are meant; what is not given does not matter.

    Attributes:
        task: What the team worked on.
        method: What was done about failures.
        outcome: How the run ended, or `in progress`, `cut off` or `broken`.
        patterns: What must all have been raised.
        agents: How many agents there were.
    """

    task: str | None = None
    method: str | None = None
    outcome: str | None = None
    patterns: tuple[str, ...] = ()
    agents: int | None = None

    def has(self, run: RunSummary) -> bool:
        """Whether a run is meant."""
        wanted = [
            (self.task, None if run.task is None else str(run.task)),
            (self.method, run.method),
            (self.outcome, _status(run)),
            (self.agents, run.agents),
        ]
        is_meant = all(value is None or value == found for value, found in wanted)
        return is_meant and all(run.findings.get(pattern) for pattern in self.patterns)


def ordered(runs: Iterable[RunSummary], by: str, *, reverse: bool = False) -> list[RunSummary]:
    """Runs sorted by one of `SORTS`."""
    key = SORTS[by]
    listed = list(runs)
    known = [run for run in listed if key(run) is not None]
    unknown = [run for run in listed if key(run) is None]
    return sorted(known, key=lambda run: (key(run), run.name), reverse=reverse) + unknown


# --- as a table ---


def _findings(run: RunSummary) -> str:
    return " ".join(f"{name(pattern)}:{count}" for pattern, count in sorted(run.findings.items()))


def _score(run: RunSummary) -> str:
    value = grade(run.score)
    return "" if value is None else f"{value:.4g}"


def _tokens(run: RunSummary) -> str:
    value = tokens(run.cost)
    return "" if value is None else f"{value:,.0f}"


def _date(run: RunSummary) -> str:
    date = (run.began or "")[:10]
    is_told = run.name.startswith(date.replace("-", ""))  # an execution id begins with it
    return "" if is_told else name(date)


_COLUMNS: dict[str, Callable[[RunSummary], str]] = {
    "run": lambda run: one_line(run.name, 80),
    "date": _date,
    "task": lambda run: "" if run.task is None else name(run.task),
    "method": lambda run: name(run.method) if run.method else "",
    "agents": lambda run: str(run.agents or ""),
    "outcome": _status,
    "findings": _findings,
    "score": _score,
    "time": lambda run: seconds(round(run.seconds * 1_000_000)) if run.records else "",
    "tokens": _tokens,
}
_COMMON = ("task", "method")
_RIGHT = ("agents", "score", "time", "tokens")
_LEAST_NEEDED = ("tokens", "time", "date", "agents", "method", "score", "task")
_MAY_BE_CUT = ("task", "method", "findings")
_GAP = 2
_LEAST_WIDTH = 16
"""To which a cell is cut before a column is left out."""


def print_list(console: Console, runs: Sequence[RunSummary]) -> None:
    """Print runs as a table, one a line; what is common to all of them stands below it.

    Where it is too wide, long cells are cut, and the columns that are least needed left out.
    """
    cells = {label: [column(run) for run in runs] for label, column in _COLUMNS.items()}
    same = {k: cells[k][0] for k in _COMMON if len(set(cells[k])) == 1 and len(runs) > 1}
    shown = {k: column for k, column in cells.items() if k not in same and any(column)}
    widths = _fitted(shown, console.width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for label, width in widths.items():
        table.add_column(_cell(label, label, width), no_wrap=True)
    for n in range(len(runs)):
        table.add_row(*(_cell(k, shown[k][n], width) for k, width in widths.items()))
    console.print(table)
    for run in runs:
        if run.problem:
            console.print(Text(f"broken: {one_line(run.problem)}"), soft_wrap=True)
    console.print(Text(_foot(len(runs), same)), soft_wrap=True)
    if simulated := sum(run.agents_are == "simulated" for run in runs):
        console.print(Text(f"{simulated} of {len(runs)} with simulated agents"), soft_wrap=True)
    if left_out := [label for label in shown if label not in widths]:
        text = f"no room for {', '.join(left_out)}; a wider terminal or --json has all"
        console.print(Text(text), soft_wrap=True)


def _cell(label: str, content: str, width: int) -> Text:
    text = Text(content, justify="right" if label in _RIGHT else "left")
    text.truncate(width, overflow="ellipsis")
    return text


def _fitted(shown: Mapping[str, Sequence[str]], room: int) -> dict[str, int]:
    """The columns for which there is room, and how wide each is."""
    whole = {k: max(map(cell_len, (k, *column))) for k, column in shown.items()}
    widths = dict(whole)
    _cut(widths, _MAY_BE_CUT, _LEAST_WIDTH, room)
    for label in _LEAST_NEEDED:
        if _excess(widths, room) > 0:
            widths.pop(label, None)
    left = {k: whole[k] for k in widths}  # what was left out gives its room to the others
    for labels in (_MAY_BE_CUT, ("run",), tuple(left)):
        _cut(left, labels, 1, room)
    return left


def _excess(widths: Mapping[str, int], room: int) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1) - room


def _cut(widths: dict[str, int], labels: Sequence[str], least: int, room: int) -> None:
    """Make the widest of some columns narrower until all fit, or none can be narrower."""
    there = [label for label in labels if label in widths]
    while there and _excess(widths, room) > 0:
        widest = max(there, key=lambda label: widths[label])
        if widths[widest] <= least:
            return
        widths[widest] -= 1


def _foot(count: int, same: Mapping[str, str]) -> str:
    common = [f"{label} {value}" for label, value in same.items() if value]
    return ", all with ".join([counted(count, "run"), *([", ".join(common)] if common else [])])
