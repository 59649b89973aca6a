"""Unchanged forks of runs with faults: how many equal their parent, byte for byte.

    python -m tests.faults.forks              # 63 runs, three forks each

Kinds of all families, with and without healing, in virtual time.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

from dig.errors import DigError
from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.faults.inject.faulty_team import FaultyTeam, disturbance_of
from dig.tasks.run.execute import execute
from dig.tasks.run.run_fork import fork
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.journal import read_side
from dig.traces.journal.reader import TRACE

SHARES = (0.15, 0.5, 0.85)
"""Where in its parent each fork begins, as a share of the records."""


def faulty(fault: Fault, seed: int, runs: Path, **more: Any) -> Path:
    """The directory of a small run with a fault."""
    run = TeamRun(**{"agents": 4, "size": 3000, "seed": seed, "limit_s": 90.0} | more)
    return execute(run, runs, disturb=partial(FaultyTeam.of_arrangement, faults=[fault])).directory


def runs_with_faults(seeds: int, runs: Path) -> Iterator[tuple[str, Path]]:
    """A run of each kind of fault for each seed; every other one is healed."""
    for number, kind in enumerate(KINDS):
        for seed in range(1, seeds + 1):
            fault = Fault(kind=kind, target=f"agent-{1 + (number + seed) % 4}", start_s=2.0)
            method = ("mas", "dig")[(number + seed) % 2]
            yield kind, faulty(fault, seed, runs, method=method)


def is_same(parent: Path, at: int, runs: Path) -> str:
    """What became of an unchanged fork at a record: `same`, `differs` or `refused`."""
    try:
        made = fork(parent, at, runs, disturb=disturbance_of(read_side(parent)))
    except DigError:
        return "refused"
    same = (made.directory / TRACE).read_bytes() == (parent / TRACE).read_bytes()
    rmtree(made.directory)
    return "same" if same else "differs"


def main(seeds: int = 3) -> None:
    """Print the counts, and the kinds of which an unchanged fork is not the same run."""
    seen, wrong = Counter[str](), Counter[str]()
    with TemporaryDirectory() as folder:
        runs = Path(folder)
        for kind, parent in runs_with_faults(seeds, runs / "runs"):
            count = len((parent / TRACE).read_bytes().splitlines())
            ends = [is_same(parent, int(share * count), runs / "forks") for share in SHARES]
            seen.update(ends)
            seen["runs"] += 1
            seen["runs, all forks same"] += ends == ["same"] * len(SHARES)
            wrong.update({f"{kind}: {end}" for end in ends if end != "same"})
    print(dict(seen))
    for what, times in sorted(wrong.items()):
        print(f"  {what} (in {times} runs)")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
