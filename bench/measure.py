"""Timing: candidates in turns, so that a busy machine is unfair to all of them alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Candidate = Callable[[], int]
"""Does the work once; returns how many units of it there were."""


@dataclass(frozen=True)
class Table:
    """Figures under a heading; the first column names the candidate."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def __str__(self) -> str:
        cells = [tuple(self.columns), *(tuple(row) for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = [
            "  ".join(
                c.ljust(w) if i == 0 else c.rjust(w)
                for i, (c, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        rule = "  ".join("-" * w for w in widths)
        return "\n".join(
            [self.title, lines[0], rule, *lines[1:], *([self.note] if self.note else [])]
        )


def per_unit(
    candidates: Mapping[str, Candidate],
    rounds: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median microseconds a unit of each candidate, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, candidate in candidates.items():
            gc.collect()
            start = clock()
            units = candidate()
            if turn:  # the first turn warms up
                times[name].append((clock() - start) / units * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def compared(title: str, unit: str, times: Mapping[str, float], note: str = "") -> Table:
    """A table of times with their ratio to the first one."""
    base = next(iter(times.values()))
    rows = [(name, f"{us:.2f}", f"{us / base:.2f}") for name, us in times.items()]
    return Table(title, ("", f"us/{unit}", "ratio"), rows, note)


def claim(what: str, value: float, limit: float) -> str:
    """A figure beside its limit, as a line under a table."""
    return f"{what}: {value:.2f} (limit {limit:g}{'' if value <= limit else ', MISSED'})"
