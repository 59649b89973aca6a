"""`make campaign`: do the detectors find in random traces what the oracle finds?

    python -m tests.campaign --seed 0 --count 100000 --jobs 2

Trace number n is a function of n alone, so a failing one is had again with `--seed n --count 1`.
What fails is made small and left in a file. Exit status 0: all equal, 1: not all, 2: wrong
arguments, 130: interrupted (with what was done until then).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .comparison import compare, numbered_trace
from .features import FEATURES
from .oracle import Row
from .progress import over_processes, progress
from .shrinking import shrink

BATCH = 50
MOST_FAILURES = 10


@dataclass
class Failure:
    """A trace in whose findings the two differ, made small."""

    number: int
    length: int
    rows: list[Row]
    difference: str


@dataclass
class Tally:
    """What was seen in some traces: in how many of them each pattern and feature was."""

    traces: int = 0
    findings: int = 0
    patterns: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.traces += other.traces
        self.findings += other.findings
        self.patterns += other.patterns
        self.features += other.features
        self.failures += other.failures


def look(numbers: Sequence[int]) -> Tally:
    """Compares the traces with these numbers."""
    tally = Tally()
    for number in numbers:
        rows = numbered_trace(number)
        try:
            seen = compare(rows)
        except Exception as error:  # the oracle is at fault
            error.add_note(f"in random trace {number}")
            raise
        tally.traces += 1
        tally.findings += len(seen.expected)
        tally.patterns.update(set(seen.kinds))
        tally.features.update(seen.features)
        if not seen.agree:
            small = shrink(rows, lambda rows: not compare(rows).agree)
            tally.failures.append(Failure(number, len(rows), small, compare(small).difference()))
            if len(tally.failures) == MOST_FAILURES:
                break
    return tally


def batches(seed: int, count: int, jobs: int) -> Iterator[Tally]:
    """Compares `count` traces from number `seed` on, over some processes if `jobs` is above 1."""
    last = seed + count
    parts = [range(n, min(n + BATCH, last)) for n in range(seed, last, BATCH)]
    return over_processes(look, parts, jobs)


def campaign(seed: int, count: int, jobs: int) -> tuple[Tally, bool]:
    """Compares the traces; returns what was seen, and whether it was interrupted."""
    tally = Tally()
    try:
        with progress(count) as bar:
            for part in batches(seed, count, jobs):
                tally.add(part)
                bar.advance(bar.task_ids[0], part.traces)
                if len(tally.failures) >= MOST_FAILURES:
                    break
    except KeyboardInterrupt:
        return tally, True
    return tally, False


def report(tally: Tally, out: Path) -> Iterator[str]:
    """What was seen, as lines; the traces that failed are written into the folder `out`."""
    yield f"\n{'pattern':<42}traces"
    yield from (f"  {name:<40}{n:6}" for name, n in sorted(tally.patterns.items()))
    yield f"\n{'feature':<42}traces"
    yield from (f"  {name:<40}{tally.features[name]:6}" for name in FEATURES)
    for failure in sorted(tally.failures, key=lambda failure: failure.number):
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"seed-{failure.number}.dig.jsonl"
        lines = (json.dumps(row) + "\n" for row in failure.rows)
        path.write_text("".join(lines), encoding="utf-8")
        yield f"\nseed {failure.number} fails: {failure.difference}"
        yield f"  again: python -m tests.campaign --seed {failure.number} --count 1"
        yield f"  {len(failure.rows)} of its {failure.length} records are enough: {path}"


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.campaign", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="number of the first trace (0)")
    parser.add_argument("--count", type=int, default=100_000, help="how many traces (100000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    parser.add_argument("--out", type=Path, default=Path(".campaign"), help="for what fails")
    options = parser.parse_args(argv)
    if options.seed < 0 or options.count < 1 or options.jobs < 1:
        parser.error("seed must not be below 0, count and jobs must be above 0")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    begun = time.monotonic()
    tally, interrupted = campaign(options.seed, options.count, options.jobs)
    seconds = time.monotonic() - begun
    print("\n".join(report(tally, options.out)).lstrip())
    told = f"{tally.findings} findings in {tally.traces} traces, {seconds:.0f} s"
    if interrupted:
        told += f"; interrupted before the other {options.count - tally.traces}"
    elif tally.failures and tally.traces < options.count:
        told += f"; it ended early, after {len(tally.failures)} failures"
    verdict = f"{len(tally.failures)} traces FAILED" if tally.failures else "all equal the oracle's"
    print(f"\n{told}: {verdict}" if tally.traces else f"\n{told}")
    return 130 if interrupted else int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
