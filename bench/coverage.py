"""`python -m bench.coverage [PAGE]`: the tables of docs/lab/experiments/coverage.md.

Whether the statistics of experiments (`dig.lab.experiment.statistics`) keep their promises: how
often an interval holds the true mean, how often a test calls two samples of one method different,
and how often it finds a difference that is there. The truth is a distribution that is known: made
by formula, or all runs of a pool, from which samples are drawn.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import sqrt
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from tempfile import TemporaryDirectory

from dig._util.intervals import wilson
from dig.lab.experiment.grid import NEWSGROUPS, Cell, Grid, TaskGrid
from dig.lab.experiment.markdown_table import Table, TableCell
from dig.lab.experiment.results import Row
from dig.lab.experiment.row_measures import (
    CALLS,
    COMPLETE,
    FINDINGS,
    RMSE,
    SECONDS,
    VALID,
    Measure,
    count_of,
)
from dig.lab.experiment.run import ExecutionOptions, carry_out_cells
from dig.lab.experiment.statistics import Mean, mean, mean_difference, share, sign_flip
from dig.runtime.workers import Workers
from dig.tasks.count_frequency import TASK as COUNT_FREQUENCY

MARKER = "<!-- tables -->"
COUNTS = (5, 10, 20, 50, 100, 200)
LARGE = 100
"""From so many values on, half as many samples are enough."""
TIMES, COMPARISONS = 400, 1000
POOL = 400
TOGETHER = 6
SIX = "six settings: "
LEVEL = 0.05
SLOWER_S = 2.0
"""The planted difference of seconds; that of flags: half of the invalid runs become valid."""

Pairs = Callable[[random.Random, int], list[tuple[float, float]]]
"""Draws so many pairs of values, of two methods."""


# --- what is drawn from ---


def shares() -> dict[str, float]:
    """True shares of flags."""
    return {f"{p:g}": p for p in (0.02, 0.1, 0.3, 0.5, 0.8, 0.95, 0.99)}


def _flags(gained: float, lost: float) -> Pairs:
    """A flag that is set by one method alone, or by the other alone, so often."""

    def draw(chance: random.Random, count: int) -> list[tuple[float, float]]:
        rolls = [chance.random() for _ in range(count)]
        return [(float(r < gained or r > 0.7), float(r > 0.7 - lost)) for r in rolls]

    return draw


def _skewed(chance: random.Random, count: int) -> list[tuple[float, float]]:
    return [
        (10 + chance.lognormvariate(1, 0.8), 10 + chance.lognormvariate(1.5, 0.8))
        for _ in range(count)
    ]


def _seldom(part: float) -> Pairs:
    """Most differences are exactly 0, the others are exponential with mean 6."""

    def draw(chance: random.Random, count: int) -> list[tuple[float, float]]:
        found = []
        for _ in range(count):
            base = 12 + chance.lognormvariate(1, 0.5)
            more = chance.expovariate(1 / 6) if chance.random() < part else 0.0
            found.append((base + more, base))
        return found

    return draw


def _six(draw: Pairs) -> Pairs:
    """Means over six settings."""

    def drawn(chance: random.Random, count: int) -> list[tuple[float, float]]:
        cells = draw(chance, TOGETHER * count)
        sixes = [cells[i::count] for i in range(count)]
        return [(fmean(a for a, _ in six), fmean(b for _, b in six)) for six in sixes]

    return drawn


def made() -> dict[str, tuple[Pairs, bool]]:
    """Distributions by formula, and whether they are of flags."""
    return {
        "flags, +0.30": (_flags(0.3, 0.0), True),
        "flags, +0.05": (_flags(0.05, 0.0), True),
        "flags, 0.02 each way": (_flags(0.02, 0.02), True),
        "log-normal": (_skewed, False),
        "70 % are 0": (_seldom(0.3), False),
        "90 % are 0": (_seldom(0.1), False),
        "97 % are 0": (_seldom(0.03), False),
    }


@cache
def pool(task: str, agents: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Runs of `mas` and of `dig` with the same seeds."""
    size = {COUNT_FREQUENCY: 5000, NEWSGROUPS: 100}[task]
    grid = Grid(
        tasks=(TaskGrid(task=task, sizes=(size,)),), methods=("mas", "dig"), agents=(agents,),
        seeds=tuple(range(1, POOL + 1)),
    )  # fmt: skip
    cells: Sequence[Cell] = [*grid.cells()]
    with TemporaryDirectory() as out:
        rows = carry_out_cells(cells, Path(out), ExecutionOptions()).rows
    return tuple(rows[::2]), tuple(rows[1::2])


POOLS = ((COUNT_FREQUENCY, 6), (NEWSGROUPS, 3))
OF_POOLS = (
    VALID, COMPLETE, RMSE, SECONDS, CALLS, FINDINGS, count_of("ET"), count_of("OE"), count_of("CLA")
)  # fmt: skip


def _of_pool(task: str, agents: int, measure: Measure) -> list[tuple[float, float]]:
    plain, healed = pool(task, agents)
    values = [(measure.of(b), measure.of(a)) for a, b in zip(plain, healed, strict=True)]
    return [(a, b) for a, b in values if a is not None and b is not None]


# --- intervals ---


def _student(values: Sequence[float]) -> tuple[float, float]:
    """Student's interval; the quantile by Cornish and Fisher's expansion, near enough from 4 on."""
    n, z = len(values) - 1, NormalDist().inv_cdf(0.975)
    t = z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    half = t * stdev(values) / sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def _ends(found: Mean | None) -> tuple[float, float]:
    assert found is not None and found.low is not None and found.high is not None
    return found.low, found.high


def _times(times: int, count: int) -> int:
    return times // 2 if count >= LARGE else times


class _Tally:
    """How often intervals hold the truth, and how wide they are on average."""

    def __init__(self, truth: float) -> None:
        self.truth, self.hits, self.width, self.count = truth, 0, 0.0, 0

    def add(self, ends: tuple[float, float]) -> None:
        self.count += 1
        self.hits += ends[0] - 1e-9 <= self.truth <= ends[1] + 1e-9
        self.width += ends[1] - ends[0]

    def __str__(self) -> str:
        return f"{self.hits / self.count:.3f} ({self.width / self.count:.3g})"


def share_line(item: tuple[str, float], counts: Sequence[int], times: int) -> list[TableCell]:
    """The coverage of `share` at a true share, and Wilson's beside it."""
    name, p = item
    line: list[TableCell] = [name]
    for count in counts:
        chance = random.Random(f"{name} {count}")
        ours, theirs = _Tally(p), _Tally(p)
        for _ in range(_times(times, count)):
            flags = [float(chance.random() < p) for _ in range(count)]
            ours.add(_ends(share(flags)))
            theirs.add(wilson(round(sum(flags)), count))
        line += [f"{ours}", f"{theirs}"]
    return line


def difference_line(name: str, counts: Sequence[int], times: int) -> list[TableCell]:
    """The coverage of a mean difference's interval as experiments have it, and Student's."""
    draw, is_flag, truth = _source(name.removeprefix(SIX))
    together = TOGETHER if name.startswith(SIX) else 1
    sample = _six(draw) if together > 1 else draw
    line: list[TableCell] = [name]
    for count in counts:
        chance = random.Random(f"{name} {count}")
        ours, theirs = _Tally(truth), _Tally(truth)
        for _ in range(_times(times, count)):
            # The range of values is known from all teams and methods, some eight times as many.
            seen = [value for pair in draw(chance, 8 * count) for value in pair]
            most = 1.0 if is_flag else (max(seen) - min(seen)) / 2
            differences = [a - b for a, b in sample(chance, count)]
            ours.add(_ends(mean_difference(differences, most, together)))
            theirs.add(_student(differences))
        line += [f"{ours}", f"{theirs}"]
    return line


def mean_line(name: str, counts: Sequence[int], times: int) -> list[TableCell]:
    """The coverage of the interval of one method's mean as tables have it, and Student's."""
    draw, _, _ = _source(name)
    truth = fmean(a for a, _ in draw(random.Random(0), 400_000))
    line: list[TableCell] = [name]
    for count in counts:
        chance = random.Random(f"{name} {count}")
        ours, theirs = _Tally(truth), _Tally(truth)
        for _ in range(_times(times, count)):
            seen = [value for pair in draw(chance, 8 * count) for value in pair]
            low, high = min(seen), max(seen)
            values = [a for a, _ in draw(chance, count)]
            middle, reach = fmean(values), (high - low) / 2
            ours.add(_ends(mean(values, max(low, middle - reach), min(high, middle + reach))))
            theirs.add(_student(values))
        line += [f"{ours}", f"{theirs}"]
    return line


def _source(name: str) -> tuple[Pairs, bool, float]:
    """The distribution of that name, whether it is of flags, and its true mean difference."""
    if name in made():
        draw, is_flag = made()[name]
        large = draw(random.Random(0), 400_000)
        return draw, is_flag, fmean(a - b for a, b in large)
    task, agents, what = name.split(", ")
    measure = next(one for one in OF_POOLS if one.name == what)
    pairs = _of_pool(task, int(agents), measure)
    return (
        lambda chance, count: chance.choices(pairs, k=count),
        measure.is_flag,
        fmean(a - b for a, b in pairs),
    )


# --- tests ---


def false_alarms(
    rows: Sequence[Row], measure: Measure, count: int, *, times: int = COMPARISONS,
    planted: Callable[[float, random.Random], float] = lambda value, chance: value,
) -> float:  # fmt: skip
    """How often two samples of one method, with other seeds, are called different.

    Args:
        rows: The pool of runs.
        measure: What is compared.
        count: How many pairs a sample has.
        times: How many samples.
        planted: Changes the values of the second half: then this is the power of the test.
    """
    values = [value for row in rows if (value := measure.of(row)) is not None]
    chance, found = random.Random(f"{measure.name} {count}"), 0
    for _ in range(times):
        drawn = chance.sample(values, 2 * count)
        others = [planted(value, chance) for value in drawn[count:]]
        differences = [a - b for a, b in zip(others, drawn[:count], strict=True)]
        found += sign_flip(differences) <= LEVEL
    return found / times


def mended(value: float, chance: random.Random) -> float:
    """A flag that is set in half of the runs in which it was not."""
    return float(value or chance.random() < 0.5)


def slower(value: float, chance: random.Random) -> float:
    """Some seconds more."""
    return value + SLOWER_S


def null_line(name: str, counts: Sequence[int], times: int) -> list[TableCell]:
    """The share of false alarms, in both pools together."""
    measure = next(one for one in OF_POOLS if one.name == name)
    line: list[TableCell] = [name]
    for count in counts:
        found = [
            false_alarms(pool(*one)[0], measure, count, times=times // len(POOLS)) for one in POOLS
        ]
        line.append(f"{fmean(found):.3f}")
    return line


def power_line(name: str, counts: Sequence[int], times: int) -> list[TableCell]:
    """How often a planted difference is found."""
    measure, planted = PLANTED[name]
    rows = pool(*POOLS[0])[0]
    found = [false_alarms(rows, measure, n, times=times, planted=planted) for n in counts]
    return [name, *(f"{power:.3f}" for power in found)]


PLANTED: Mapping[str, tuple[Measure, Callable[[float, random.Random], float]]] = {
    "valid: half of the invalid runs become valid": (VALID, mended),
    "complete: half of the others become complete": (COMPLETE, mended),
    f"seconds: {SLOWER_S:g} s more": (SECONDS, slower),
}


# --- the page ---


def tables(jobs: int) -> list[Table]:
    """All tables."""
    of_pools = {f"{t}, {n}, {one.name}": one for t, n in POOLS for one in OF_POOLS}
    names = [*made(), *of_pools]
    few = [name for name, one in of_pools.items() if one in (VALID, SECONDS, FINDINGS)]
    names += [f"{SIX}{name}" for name in (*made(), *few)]
    numbers = [name for name, one in of_pools.items() if one in (RMSE, SECONDS, CALLS, FINDINGS)]
    both = [head for count in COUNTS for head in (f"n = {count}", "other")]
    tested = (10, 30, 100)
    heads = [f"n = {count}" for count in tested]
    with Workers(jobs, "the coverage") as workers:
        each_share = partial(share_line, counts=COUNTS, times=TIMES)
        of_shares = [*workers.each(each_share, shares().items())]
        each_difference = partial(difference_line, counts=COUNTS, times=TIMES)
        of_differences = [*workers.each(each_difference, names)]
        of_means = [*workers.each(partial(mean_line, counts=COUNTS, times=TIMES), numbers)]
        null = [
            *workers.each(
                partial(null_line, counts=tested, times=COMPARISONS),
                [one.name for one in (VALID, COMPLETE, SECONDS, CALLS)],
            )
        ]
        power = [*workers.each(partial(power_line, counts=tested, times=COMPARISONS), PLANTED)]
    coverage = (
        f"Share of {TIMES} intervals (from n = {LARGE} on half as many) that hold the truth (mean "
        "width). Other: "
    )
    return [
        Table("shares", "Shares of flags", ["true share", *both], of_shares,
              [f"{coverage}Wilson's interval."]),
        Table("differences", "Differences of two methods", ["distribution", *both], of_differences,
              [f"{coverage}Student's interval. The last ones are drawn from a pool of {POOL} runs "
               "each of mas and dig: task, agents, measure. Six settings: the mean of six draws "
               "for each seed, as where tasks and levels are looked at together."]),
        Table("means", "Means of one method", ["distribution", *both], of_means,
              [f"{coverage}Student's interval."]),
        Table("null", "Tests without any difference", ["measure", *heads], null,
              [f"Share of {COMPARISONS:,} comparisons of mas with mas, with other seeds, whose p "
               f"is at most {LEVEL}, uncorrected; flags: McNemar, others: sign-flip."]),
        Table("power", "Tests of a planted difference", ["planted", *heads], power,
              [f"Share of {COMPARISONS:,} comparisons whose p is at most {LEVEL}; the planted "
               "difference is between runs with other seeds, so it is harder to find than between "
               f"methods on the same ones. {POOLS[0][0]}, {POOLS[0][1]} agents."]),
    ]  # fmt: skip


def main() -> None:
    """Measure, and print the tables or put them into the page."""
    text = "\n".join(table.markdown() for table in tables(os.cpu_count() or 1))
    if len(sys.argv) < 2:
        print(text)
        return
    page = Path(sys.argv[1])
    above = page.read_text("utf-8").split(MARKER)[0]
    page.write_text(f"{above}{MARKER}\n\n{text}", "utf-8")


if __name__ == "__main__":
    main()
