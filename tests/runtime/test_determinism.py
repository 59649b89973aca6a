"""The same seed, the same bytes: in one process, and in processes that hash differently."""

from __future__ import annotations

import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import pytest

from dig.graph.codec import encode
from dig.runtime import simulate
from tests.chaos import chaos_run
from tests.helpers import Recorder

ROOT = Path(__file__).parents[2]
SEEDS = (22, 26, 33)  # long runs with scripts, gates and policies


def trace(seed: int) -> bytes:
    """The trace file of a run with everything in it."""
    run = chaos_run(seed, heal=True, limit_s=8.0)
    sink = Recorder()
    simulate(run.team, run.problem, setup=run.setup, script=run.script, sink=sink)
    return "".join(encode(record) + "\n" for record in sink).encode()


def digest(seed: int) -> str:
    return blake2b(trace(seed)).hexdigest()


def elsewhere(hash_seed: int) -> list[str]:
    """The digests of all seeds, as a fresh process computes them."""
    code = (
        "from tests.runtime.test_determinism import SEEDS, digest\n"
        "for seed in SEEDS: print(digest(seed))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize("hash_seed", [0, 1, 2, 3])
def test_the_same_seed_gives_the_same_bytes_in_every_process(hash_seed: int) -> None:
    """No set order, address or clock gets into a trace."""
    assert elsewhere(hash_seed) == [digest(seed) for seed in SEEDS]


def test_the_same_seed_gives_the_same_bytes_again_and_again() -> None:
    """Nothing is left over from one run that changes the next."""
    assert len({trace(SEEDS[0]) for _ in range(10)}) == 1


def test_the_seeds_are_worth_something() -> None:
    """The traces that are compared are long, and each is different."""
    traces = [trace(seed) for seed in SEEDS]
    assert len(set(traces)) == len(SEEDS)
    assert min(map(len, traces)) > 5000
