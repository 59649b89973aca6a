"""Hostile inputs for an entrance: `python -m tests.fuzz reader|importers|server|journals|sets`.

    python -m tests.fuzz reader --count 10000 --seed 0
    python -m tests.fuzz reader --count 10000 --guided

Promised of every input: nothing but the documented errors comes out, it computes for less than
a second, nothing is carried out, fetched or written elsewhere; and memory stays where it was.
Without `--guided`, input number n is a function of the seed and n, so that a failing one is had
again with `--first n --count 1`. With it, atheris (`pip install atheris`) looks for inputs that
reach code which none has reached yet. A failing input is left in `.campaign/`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

LEFT = Path(".campaign")


def main() -> int:
    """Fuzz an entrance; 0: all promises were kept, 1: not."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("entrance", choices=["reader", "importers", "server", "journals", "sets"])
    parser.add_argument("--count", type=int, default=10_000, help="how many inputs (10,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--guided", action="store_true", help="by what code is reached (atheris)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.guided:
            from .guided import guide

            return guide(asked.entrance, Path(folder), asked.count, asked.seed, LEFT)
        return unguided(asked, Path(folder))


def unguided(asked: argparse.Namespace, folder: Path) -> int:
    """Hand in inputs by their numbers."""
    from .running import Fuzzer, memory_mib

    fuzzer = Fuzzer(asked.entrance, folder, asked.seed)
    began, before = time.monotonic(), memory_mib()
    for number in range(asked.first, asked.first + asked.count):
        fault = fuzzer.try_number(number)
        if fault is not None:
            path = fuzzer.keep(fault, LEFT)
            print(f"input {number} ({path}): {fault.what}", file=sys.stderr)
            print(f"again: python -m tests.fuzz {asked.entrance} --seed {asked.seed} "
                  f"--first {number} --count 1", file=sys.stderr)  # fmt: skip
            return 1
        if sys.stderr.isatty() and number % 100 == 0:
            print(f"\r{number - asked.first:,} of {asked.count:,}", end="", file=sys.stderr)
    seconds, more = time.monotonic() - began, memory_mib() - before
    fuzzer.close()
    print(
        f"{asked.entrance}: {asked.count:,} inputs, {fuzzer.accepted:,} accepted, "
        f"in {seconds:.1f} s; the slowest took {fuzzer.slowest_s * 1000:.0f} ms; "
        f"memory grew by {more:.0f} MiB; no promise was broken"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
