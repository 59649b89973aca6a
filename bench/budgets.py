"""What a bounded budget of healing is worth, beside `retry` with as many attempts.

    python -m bench.budgets DIR --kind MODULE:OBJECT --jobs 2

The failures of a set (`digmon bench make`) are played again with budgets from 0 to 8. Attempts:
how often the problem is given again. Findings: how many are healed in the run. Steps: how often
work, or an agent's place, is given to others; notes and returned answers are beside them.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from dig.lab.benchmark.instances import FaultSet, Label, RunEnding
from dig.lab.benchmark.scores_healing import play_all
from dig.lab.experiment.markdown_table import Table, TableCell, Value
from dig.lab.experiment.statistics import share
from dig.lab.run_pair import play
from dig.lab.truth.baseline import Baseline

LARGEST = 8
SWEPT = {
    "retry, attempts": ("retry", "per_run"),
    "dig, findings": ("dig", "per_run"),
    "dig+, findings": ("dig+", "per_run"),
    "dig+, steps": ("dig+", "per_problem"),
}
"""The columns: a method, and the bound of its budget that is swept."""


def heal_within(
    task: tuple[Label, Baseline], foreign: Collection[str] = ()
) -> dict[str, list[bool]]:
    """Report, for each column and each budget, whether the answer is valid."""
    label, _ = task
    plain, faults = label.team_run, (*label.decoys, *label.read_faults(foreign))

    def is_valid(method: str, bound: str, most: int) -> bool:
        budget = replace(plain.budget, **{bound: most})
        return RunEnding.of(play(replace(plain, method=method, budget=budget), faults)).valid

    budgets = range(LARGEST + 1)
    return {name: [is_valid(*column, most) for most in budgets] for name, column in SWEPT.items()}


def sweep(fault_set: FaultSet, jobs: int, kinds: Collection[str]) -> Table:
    """The shares of valid answers, a row a budget."""
    played = play_all(heal_within, fault_set, jobs, kinds)
    rows: list[list[TableCell]] = [
        [most, *(Value(share([run[name][most] for run in played])) for name in SWEPT)]
        for most in range(LARGEST + 1)
    ]
    title = f"Valid answers of {len(played)} failures with a bounded budget"
    return Table("budgets", title, ["budget", *SWEPT], rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", type=Path)
    parser.add_argument("--kind", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    print(sweep(FaultSet.open(chosen.set), chosen.jobs, chosen.kind).markdown())


if __name__ == "__main__":
    main()
