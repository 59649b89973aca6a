"""The campaign on what a run leaves, with small counts; in a process of its own, since it forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COUNTS = {"kills": 4, "segments": 6, "power": 20, "timed": 1, "cuts": 50, "flips": 100,
          "files": 20, "replays": 3, "mutations": 10, "forks": 1}  # fmt: skip


CODE = f"""
from tests.journal_campaign import main
for name, count in {COUNTS}.items():
    main([name, "--count", str(count)])
"""


@pytest.mark.nightly
def test_a_short_version_of_each_part_holds() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == [*COUNTS]
