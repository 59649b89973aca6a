"""The numbers of fault-free runs of a configuration: a deviation must exceed their spread."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dig.errors import RecordError, SettingsError
from dig.lab.run_pair import Played

from .measurements import DIGITS, Measured, measure_parts

FEWEST = 19
"""With fewer runs, not even a value that none of them reaches is rarer than one in twenty."""


@dataclass(frozen=True)
class Baseline:
    """Numbers of fault-free runs, by measure.

    Attributes:
        runs: The number of runs.
        values: For each measure all its values, in order.
    """

    runs: int
    values: Mapping[str, tuple[float, ...]]

    @classmethod
    def from_runs(cls, runs: Iterable[Played]) -> Baseline:
        """Measure some fault-free runs of a configuration, with different seeds.

        Raises:
            SettingsError: There are too few of them, or one has a fault.
        """
        played = list(runs)
        if any(run.faults for run in played):
            raise SettingsError("a run of a baseline has no fault")
        if len(played) < FEWEST:
            raise SettingsError(f"{len(played)} runs make no baseline; it takes {FEWEST} at least")
        # Problems of a session are verified one by one, so each of them is a sample.
        each = [problem for run in played for problem in run.problems]
        rows = (measure_parts(problem.parts, problem.rmse) for problem in each)
        return cls.of(len(each), chain.from_iterable(rows))

    @classmethod
    def of(cls, runs: int, rows: Iterable[Measured]) -> Baseline:
        """Make a baseline of measured numbers."""
        values: dict[str, list[float]] = {}
        for row in rows:
            values.setdefault(row.measure, []).append(row.value)
        return cls(runs, {name: tuple(sorted(numbers)) for name, numbers in sorted(values.items())})

    def rarity(self, measure: str, value: float) -> float:
        """The share of values at least as large as the given value, with the given value included.

        With random runs, this bounds the probability of such a value where there is no fault.
        """
        usual = self.values.get(measure, ())
        # Rounded as the values are, or equal numbers would not be found.
        above = len(usual) - bisect_left(usual, round(value, DIGITS))
        # The value counts as well, so that no rarity is 0: few runs cannot prove much.
        return (1 + above) / (1 + len(usual))

    def to_json(self) -> dict[str, Any]:
        """As plain JSON: for each measure the values, each with the number of times."""
        return {
            "runs": self.runs,
            "values": {name: _count(numbers) for name, numbers in self.values.items()},
        }

    @classmethod
    def read(cls, body: Any) -> Baseline:
        """Read a baseline from plain JSON.

        Raises:
            RecordError: The row is not a baseline.
        """
        try:
            values = {
                str(name): tuple(float(value) for value, times in numbers for _ in range(times))
                for name, numbers in body["values"].items()
            }
            return cls(int(body["runs"]), values)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RecordError(f"this is no baseline: {error}") from None


def _count(values: Iterable[float]) -> list[list[float]]:
    return [[value, times] for value, times in Counter(values).items()]
