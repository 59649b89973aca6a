"""Tables with intervals, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import ClassVar, Protocol

from dig._util.text import safe_text

from .results import Row
from .statistics import Mean

SIMULATED_AGENTS = "simulated agents"


@dataclass(frozen=True, slots=True)
class Value:
    """A cell: our mean beside the paper's figure.

    Attributes:
        ours: Our mean; ``None``: no run has a value, since no answer was valid for instance.
        paper: The paper's figure, if it has one.
    """

    ours: Mean | None
    paper: float | None = None

    parts: ClassVar[tuple[str, ...]] = ("", " low", " high", " runs", " paper")

    def __str__(self) -> str:
        """`1.30 [0.90, 1.70] (2.67)`: the mean, the interval, and the paper's figure."""
        text = with_interval(self.ours, number)
        return text if self.paper is None else f"{text} ({number(self.paper)})"

    def columns(self) -> list[str]:
        """Mean, lower and upper end, count, and the paper's figure; empty where there is none."""
        figures = astuple(self.ours) if self.ours else (None,) * 4
        return ["" if value is None else f"{value:g}" for value in (*figures, self.paper)]


class Columns(Protocol):
    """A cell with several columns in a CSV file."""

    parts: ClassVar[tuple[str, ...]]
    """The addition to the head of the column, for each of them."""

    def columns(self) -> list[str]:
        """The values of the columns."""
        ...


TableCell = str | int | Columns


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: The name of its files.
        columns: The heads of its columns.
        rows: Its cells.
        notes: Sentences above the table: how to read it, and the settings.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    notes: Sequence[str] = field(default_factory=tuple)

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [f"## {_escape(self.title)}", ""]
        lines += [f"{_escape(note)}  " for note in self.notes]
        lines += ["", _line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line([str(cell) for cell in row]) for row in self.rows]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """The table as CSV: mean, interval and the paper's figure each have a column."""
        notes = [[f"# {note}"] for note in (self.title, *self.notes)]
        rows = [[part for cell in row for part in _parts(cell)] for row in self.rows]
        return as_csv([*notes, self._heads(), *rows])

    def _heads(self) -> Iterator[str]:
        # The cells of a column are of one type, so the first row tells how many columns it takes.
        first: Sequence[TableCell] = self.rows[0] if self.rows else [""] * len(self.columns)
        for head, cell in zip(self.columns, first, strict=True):
            yield from [head] if isinstance(cell, str | int) else map(head.__add__, cell.parts)


def settings_notes(settings: Mapping[str, str], rows: Iterable[Row]) -> list[str]:
    """Notes of a table: the settings, fixed before the comparison, and the data."""
    data = sorted({row.data_are for row in rows})
    fixed = "; ".join(f"{name}: {value}" for name, value in settings.items())
    notes = [f"Fixed before any comparison, the same for all methods: {fixed}."]
    return [*notes, f"Data: {'; '.join(data)}."]


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV; ``None`` is an empty cell."""
    text = io.StringIO()
    cells = ([harmless("" if cell is None else str(cell)) for cell in row] for row in rows)
    # By default the module ends lines as Windows does.
    csv.writer(text, lineterminator="\n").writerows(cells)
    return text.getvalue()


def harmless(text: str) -> str:
    """Text that no spreadsheet reads as a formula."""
    text = safe_text(text)
    # Spreadsheets run such cells; a negative number is meant as one.
    if text.lstrip()[:1] in ("=", "+", "-", "@") and not _isnumber(text):
        return "'" + text
    return text


def _parts(cell: TableCell) -> list[str]:
    return [str(cell)] if isinstance(cell, str | int) else cell.columns()


def _isnumber(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def with_interval(mean: Mean | None, text_of: Callable[[float], str]) -> str:
    """`1.30 [0.90, 1.70]`: a mean with the interval, if there are both."""
    if mean is None:
        return "-"
    text = text_of(mean.mean)
    if mean.low is not None and mean.high is not None:
        text += f" [{text_of(mean.low)}, {text_of(mean.high)}]"
    return text


def number(value: float) -> str:
    """A number with two decimals, or without decimals if large; never a negative zero."""
    # -0.001 would be printed as -0.00.
    if round(value, 2) == 0:
        value = 0.0
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def _escape(text: str) -> str:
    return " ".join(safe_text(text).split()).replace("|", "\\|").replace("<", "&lt;")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escape, cells))} |"
