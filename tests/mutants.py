"""`make mutants`: do the tests notice the bugs of `planted.py`, and most of `operators.py`?

    python -m tests.mutants [WORD ...] [--count 60] [--seed 0] [--jobs 2]

Each bug is planted in a copy of the project, on which a quick part of the suite then has to fail,
or one of 1,000 random schedules.
Exit status 0: the planted ones are caught, and of the others the share that is usual; 1: they are
not; 2: wrong arguments; 130: interrupted.
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

from .operators import sample
from .planted import IN_SUITE, SCHEDULED, SHELL, SIMULATOR, WRAPPED, Mutant

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
ENGINES = {
    "adapters": (WRAPPED,), "monitor": (SIMULATOR,), "runtime": (SIMULATOR, SHELL),
    "traces": (SIMULATOR,), "graph/chain.py": (SIMULATOR,),
}  # fmt: skip
"""What judges the bugs that a machine made in a package or file, if the suite notices nothing."""
SCHEDULES = ("--count", "1000", "--failures", "1")
MUTANTS = [*IN_SUITE, *SCHEDULED]
LEAST_CAUGHT = 0.7
"""Of the bugs that a machine made; what survives is for the most part no bug that one can see."""
LONGEST_S = 300


class Misfit(Exception):
    """The text of a mutant does not stand in its file exactly once."""


def planted(mutant: Mutant, root: Path = ROOT) -> str:
    """The file of a mutant below `root` with the bug in it.

    Raises:
        Misfit: It cannot be planted.
    """
    if not mutant.text:  # a machine has made it, of this very file
        return mutant.new
    source = (root / "dig" / mutant.file).read_text(encoding="utf-8")
    count = source.count(mutant.text)
    if count != 1:
        raise Misfit(f"dig/{mutant.file}: {mutant.breaks}: its text stands there {count} times")
    return source.replace(mutant.text, mutant.new)


@dataclass(frozen=True)
class Trial:
    """What the suite said to one copy of the project."""

    passed: bool
    caught_by: str
    seconds: float


def _judges(mutant: Mutant | None) -> list[list[str]]:
    """What Python runs to find a bug: it ends with 1 if there is one, with 0 if there is none."""
    if mutant is None or mutant.text:
        return [_judge(mutant.engine if mutant else "")]
    engines = ENGINES.get(mutant.file) or ENGINES.get(mutant.file.partition("/")[0], ())
    return [_judge(""), *map(_judge, engines)]


def _judge(engine: str) -> list[str]:
    if engine in ("", WRAPPED):
        # Why a comparison of two histories fails would take longer to explain than the tests take.
        tests = WITH_TEAMS if engine else SELECTION
        return ["pytest", "-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--whole", *tests]
    return ["tests.schedules", "--jobs", "1", "--engine", engine, *SCHEDULES]


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of what the suite needs of the project, while it is in use."""
    caches = shutil.ignore_patterns("__pycache__")
    with TemporaryDirectory(prefix="mutant-") as folder:
        for name in ("dig", "tests", "examples"):
            shutil.copytree(root / name, Path(folder, name), ignore=caches)
        shutil.copy2(root / "pyproject.toml", folder)
        yield Path(folder)


def trial(root: Path, mutant: Mutant | None) -> Trial:
    """Runs the judges over a copy of the project with one bug in it, or with none."""
    begun = time.monotonic()
    with copied(root) as folder:
        if mutant is not None:
            (folder / "dig" / mutant.file).write_text(planted(mutant, root), encoding="utf-8")
        for judge in _judges(mutant):
            try:
                ended = subprocess.run(
                    [sys.executable, "-m", *judge],
                    cwd=folder,
                    env=os.environ | {"PYTHONPATH": str(folder)},
                    capture_output=True,
                    text=True,
                    timeout=LONGEST_S,
                )
            except subprocess.TimeoutExpired:
                return Trial(False, f"a run that did not end in {LONGEST_S} s", LONGEST_S)
            if ended.returncode > 1 and (mutant is None or mutant.text):
                raise RuntimeError(f"{judge[0]} could not run:\n{ended.stdout}{ended.stderr}")
            if ended.returncode:
                first = re.search(r"^(?:FAILED|ERROR|schedule) (\S+)", ended.stdout, re.MULTILINE)
                return Trial(False, first[0] if first else "?", time.monotonic() - begun)
    return Trial(True, "", time.monotonic() - begun)


def run(root: Path, mutants: Sequence[Mutant], jobs: int) -> list[Mutant]:
    """Tries the mutants, telling of each; returns those that survive."""
    survivors = []
    with ThreadPoolExecutor(jobs) as pool:
        trials = {pool.submit(trial, root, mutant): mutant for mutant in mutants}
        try:
            for done in as_completed(trials):
                mutant, seen = trials[done], done.result()
                word = "SURVIVED" if seen.passed else "caught"
                by = "" if seen.passed else f", by {seen.caught_by}"
                print(f"{word:<9}{seen.seconds:5.1f} s  {_named(mutant)}{by}", flush=True)
                survivors += [mutant] if seen.passed else []
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return survivors


def _named(mutant: Mutant) -> str:
    return f"{mutant.file}: {mutant.breaks}"


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="a file, or what is broken (all)")
    parser.add_argument("--count", type=int, default=60, help="how many more a machine makes")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    options = parser.parse_args(argv)
    if options.jobs < 1 or options.count < 0:
        parser.error("jobs must be above 0, and count not below")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    try:
        with copied(ROOT) as root:  # so that the project may change meanwhile
            mutants = [
                mutant
                for mutant in [*MUTANTS, *sample(root, options.seed, options.count)]
                if all(word in _named(mutant) for word in options.words)
            ]
            for mutant in mutants:
                planted(mutant, root)
            if not mutants:
                sys.exit(f"mutants: none has {' and '.join(options.words)} in its words")
            if not trial(root, None).passed:
                sys.exit("mutants: the suite fails without any bug planted; mend that first")
            survivors = run(root, mutants, options.jobs)
    except Misfit as error:
        sys.exit(f"mutants: {error}; fit the entry in tests/planted.py to the code")
    except KeyboardInterrupt:
        return 130
    made = [mutant for mutant in mutants if not mutant.text]
    unseen = [mutant for mutant in survivors if not mutant.text]
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} caught")
    for mutant in survivors:
        print(_named(mutant))
    is_usual = len(made) - len(unseen) >= LEAST_CAUGHT * len(made)
    return int(not is_usual or len(survivors) > len(unseen))


if __name__ == "__main__":
    sys.exit(main())
