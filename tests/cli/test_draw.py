"""`digmon draw`: what it writes, and how it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.traces.runs import directory, solved


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return directory(tmp_path / "runs", "r1", solved(), method="dig")


def test_draw_writes_the_file_and_says_where_it_is(call: Any, run: Path, tmp_path: Path) -> None:
    """A run directory and its trace file are the same run."""
    a, b = tmp_path / "a.svg", tmp_path / "b.svg"
    code, out, err = call("draw", run, "-o", a)
    assert (code, out, err) == (0, f"{a}: {a.stat().st_size:,} bytes\n", "")
    assert call("draw", run / "trace.dig.jsonl", "-o", b)[0] == 0
    assert "<svg" in a.read_text() and "<svg" in b.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "r.gif"], "must end in one of .svg, .png, .pdf"),
        (["-o", "r.svg", "--at", 99], "there is no record 99; the last one is 15"),
        (["-o", "r.svg", "--focus", "zz"], "there is no event or activation 'zz'"),
        (["-o", "r.svg", "--from", 5, "--to", 2], "--from 5 comes after --to 2"),
        (["-o", "nowhere/r.svg"], "cannot write nowhere/r.svg"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(
    call: Any, run: Path, options: list[Any], message: str
) -> None:
    code, out, err = call("draw", run, *options)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


def test_draw_shows_a_part_of_a_run(call: Any, run: Path, tmp_path: Path) -> None:
    """The title says which part it is."""
    out = tmp_path / "r.svg"
    assert call("draw", run, "-o", out, "--cleaned", "--focus", "q", "--hops", 1)[0] == 0
    text = out.read_text()
    assert "cleaned, 1 hop around q" in text
    assert "2 activations, 1 event" in text
