"""`python -m tests.repeats`: do the same seeds give the same bytes, in every process and Python?

    python -m tests.repeats --seeds 1000 --processes 16
    python -m tests.repeats --python /path/to/python3.13 --python /path/to/python3.12

Each process has a hash seed of its own and makes all traces; their digests have to be equal. Half
of the runs are random teams, with scripts, gates, policies and healing, the other half teams of
simulated agents with each method. A further Python needs dig and trio installed. Exit status 0:
all equal, 1: not, 2: some Python cannot make them, 130: interrupted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path

from dig.detectors.thresholds import Thresholds
from dig.graph.codec import encode
from dig.runtime import simulate
from dig.tasks.run.arrange import make_run, make_simulation, make_task

from .chaos import chaos_run
from .helpers import Recorder

ROOT = Path(__file__).parents[1]
METHODS = ("mas", "judge", "dig")
TASKS = (("count-frequency", 1000), ("newsgroups", 60))


def records(seed: int) -> Recorder:
    """The run of a seed."""
    sink = Recorder()
    if seed % 2:
        run = chaos_run(seed, heal=True)
        simulate(run.team, run.problem, setup=run.setup, script=run.script, sink=sink)
        return sink
    n = seed // 2
    task, size = TASKS[n % 2]
    method = METHODS[n % 3]
    team = make_run(task, Thresholds(), size=size, agents=3 + n % 4, seed=seed, method=method)
    make_simulation(team, make_task(team), sink).run()
    return sink


def digest(seed: int) -> str:
    """What the trace of a seed comes to."""
    lines = "".join(encode(record) + "\n" for record in records(seed))
    return blake2b(lines.encode(), digest_size=16).hexdigest()


def elsewhere(python: str, hash_seed: int, first: int, count: int) -> list[str]:
    """The digests of some seeds, as a fresh process computes them."""
    numbers = f"range({first}, {first + count})"
    code = f"from tests.repeats import digest\nfor n in {numbers}: print(digest(n))"
    done = subprocess.run(
        [python, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{python} failed:\n{done.stderr}")
    return done.stdout.split()


def differing(pythons: Sequence[str], processes: int, first: int, count: int) -> Iterator[str]:
    """In words, which seed came out otherwise where, for each process that differs."""
    places = [(python, hash_seed) for python in pythons for hash_seed in range(processes)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda place: elsewhere(place[0], place[1], first, count), places))
    for (python, hash_seed), digests in zip(places, found, strict=True):
        wrong = [first + i for i in range(count) if digests[i] != found[0][i]]
        if wrong:
            yield f"{python} with hash seed {hash_seed}: {len(wrong)} seeds differ, as {wrong[0]}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.repeats", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first one (0)")
    parser.add_argument("--processes", type=int, default=16, help="for each Python (16)")
    parser.add_argument("--python", action="append", help="a further one; may be repeated")
    options = parser.parse_args(argv)
    pythons = [sys.executable, *(options.python or ())]
    try:
        told = list(differing(pythons, options.processes, options.seed, options.seeds))
    except KeyboardInterrupt:
        return 130
    except (OSError, RuntimeError) as error:  # it cannot be run, or dig or trio is missing there
        print(error, file=sys.stderr)
        return 2
    print("\n".join(told), end="\n" if told else "")
    how = f"{options.seeds} seeds, {options.processes} processes of each of {len(pythons)} Pythons"
    print(f"{how}: {'NOT the same' if told else 'the same bytes'}")
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
