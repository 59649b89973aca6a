"""`make mutants`: does anybody notice the bugs of `planted*.py`?

    python -m tests.mutants [NAME ...] [--jobs 2]

Each bug is planted in a copy of the project, on which a quick part of the suite then has to fail,
or one of 1,000 random schedules.
Exit status 0: all are caught, 1: some survive, 2: wrong arguments, 130: interrupted.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .planted import MUTANTS as IN_GRAPH
from .planted import Mutant
from .planted_failures import FAILURES
from .planted_findings import FINDINGS
from .planted_schedules import SCHEDULED, WRAPPED

ROOT = Path(__file__).parents[1]
SELECTION = (
    "tests/test_oracle_cases.py",
    "tests/detectors/test_mended.py",
    "tests/detectors/test_repeats.py",
    "tests/detectors/test_watch.py",
    "tests/detectors/test_findings_equal_oracle.py",
    "tests/graph/test_lineage.py",
    "tests/monitor/test_monitor.py",
    "tests/monitor/test_release.py",
    "tests/monitor/test_relevance.py",
    "tests/monitor/test_ladders.py",
    "tests/graph/test_graph.py",
    "tests/graph/test_rules.py",
    "tests/graph/test_retention.py",
    "tests/diagnosis/stages/test_deciding.py",
    "tests/tasks/test_forks.py",
)
WITH_TEAMS = tuple(
    f"tests/adapters/test_{what}.py"
    for what in ("observing", "gates", "healing", "overlapping", "session", "faults")
)
SCHEDULES = ("--count", "1000", "--failures", "1")
IN_SUITE = [*IN_GRAPH, *FINDINGS, *FAILURES]
MUTANTS = [*IN_SUITE, *SCHEDULED]
LONGEST_S = 300


class Misfit(Exception):
    """The text of a mutant does not stand in its file exactly once."""


def planted(mutant: Mutant, root: Path = ROOT) -> str:
    """The file of a mutant below `root` with the bug in it.

    Raises:
        Misfit: It cannot be planted.
    """
    source = (root / "dig" / mutant.file).read_text(encoding="utf-8")
    count = source.count(mutant.text)
    if count != 1:
        raise Misfit(f"{mutant.name}: its text stands {count} times in dig/{mutant.file}")
    return source.replace(mutant.text, mutant.new)


@dataclass(frozen=True)
class Trial:
    """What the suite said to one copy of the project."""

    passed: bool
    caught_by: str
    seconds: float


def _judges(mutant: Mutant | None) -> list[str]:
    """What Python runs to find a bug: it ends with 1 if there is one, with 0 if there is none."""
    if mutant is None or mutant.engine in ("", WRAPPED):
        tests = WITH_TEAMS if mutant and mutant.engine else SELECTION
        # Why a comparison of two histories fails would take longer to explain than the tests take.
        return ["pytest", "-x", "-q", "-p", "no:cacheprovider", "--assert=plain", *tests]
    return ["tests.schedules", "--jobs", "1", "--engine", mutant.engine, *SCHEDULES]


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of what the suite needs of the project, while it is in use."""
    with TemporaryDirectory(prefix="mutant-") as folder:
        for name in ("dig", "tests", "examples"):
            shutil.copytree(root / name, Path(folder, name))
        shutil.copy2(root / "pyproject.toml", folder)
        yield Path(folder)


def trial(root: Path, mutant: Mutant | None) -> Trial:
    """Runs the selection over a copy of the project with one bug in it, or with none."""
    begun = time.monotonic()
    with copied(root) as folder:
        if mutant is not None:
            (folder / "dig" / mutant.file).write_text(planted(mutant, root), encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, "-m", *_judges(mutant)],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(folder)},
                capture_output=True,
                text=True,
                timeout=LONGEST_S,
            )
        except subprocess.TimeoutExpired:
            return Trial(False, f"a run that did not end in {LONGEST_S} s", LONGEST_S)
    told = re.search(r"^(?:FAILED|ERROR|schedule) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run:\n{done.stdout}{done.stderr}")
    return Trial(not done.returncode, told[0] if told else "?", time.monotonic() - begun)


def run(root: Path, mutants: Sequence[Mutant], jobs: int) -> list[Mutant]:
    """Tries the mutants, telling of each; returns those that survive."""
    survivors = []
    with ThreadPoolExecutor(jobs) as pool:
        trials = {pool.submit(trial, root, mutant): mutant for mutant in mutants}
        try:
            for done in as_completed(trials):
                mutant, seen = trials[done], done.result()
                word = "SURVIVED" if seen.passed else "caught"
                by = mutant.breaks if seen.passed else f"by {seen.caught_by}"
                print(f"{word:<9}{mutant.name:<26}{seen.seconds:5.1f} s  {by}", flush=True)
                survivors += [mutant] if seen.passed else []
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return survivors


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="which ones (all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.names) - {mutant.name for mutant in MUTANTS})
    if unknown:
        known = ", ".join(mutant.name for mutant in MUTANTS)
        parser.error(f"there is no {', '.join(unknown)}; known are: {known}")
    if options.jobs < 1:
        parser.error("jobs must be above 0")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    mutants = [m for m in MUTANTS if not options.names or m.name in options.names]
    try:
        with copied(ROOT) as root:  # so that the project may change meanwhile
            for mutant in mutants:
                planted(mutant, root)
            if not trial(root, None).passed:
                sys.exit("mutants: the suite fails without any bug planted; mend that first")
            survivors = run(root, mutants, options.jobs)
    except Misfit as error:
        sys.exit(f"mutants: {error}; fit the entry in tests/planted*.py to the code")
    except KeyboardInterrupt:
        return 130
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} caught")
    for mutant in survivors:
        print(f"{mutant.name}: {mutant.breaks}")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
