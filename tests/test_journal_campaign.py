"""The campaign on what a run leaves, with small counts; in a process of its own, since it forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COUNTS = {"kills": 4, "segments": 6, "power": 20, "timed": 1, "cuts": 50, "flips": 100,
          "files": 20, "replays": 3, "mutations": 10, "forks": 1}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_a_short_version_of_each_part_holds(name: str) -> None:
    command = [sys.executable, "-m", "tests.journal_campaign", name, "--count", str(COUNTS[name])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{name}: ")
