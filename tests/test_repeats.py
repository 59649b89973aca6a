"""The same seeds give the same bytes in processes that hash differently; a difference is told."""

from __future__ import annotations

import pytest

from . import repeats
from .repeats import digest, main


def test_seeds_give_the_same_bytes_in_fresh_processes(capsys: pytest.CaptureFixture[str]) -> None:
    """Random teams and simulated agents, each method, three hash seeds."""
    assert main(["--seeds", "12", "--processes", "3"]) == 0
    assert capsys.readouterr().out.endswith("the same bytes\n")


def test_a_seed_gives_the_same_bytes_again_and_again() -> None:
    """Nothing is left over from one run that changes the next; another seed is another run."""
    assert len({digest(33) for _ in range(5)}) == 1
    assert len({digest(seed) for seed in range(12)}) == 12


def test_a_python_that_cannot_make_them_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Which is another matter than bytes that differ."""
    assert main(["--seeds", "1", "--processes", "1", "--python", "/no/python"]) == 2
    assert "/no/python" in capsys.readouterr().err


def test_a_difference_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which Python, which hash seed, and the first of the seeds."""
    monkeypatch.setattr(
        repeats, "elsewhere", lambda python, hash_seed, first, count: ["a", "b" * hash_seed]
    )
    assert main(["--seeds", "2", "--processes", "2"]) == 1
    assert "with hash seed 1: 1 seeds differ, as 1" in capsys.readouterr().out
