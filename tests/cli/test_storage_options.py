"""What `digmon run` keeps, and in how many files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dig.traces.journal.reader import TRACE
from tests.traces.parted import files, whole


def journal(call: Any, runs: Path, *options: object) -> Path:
    """The journal of a short run."""
    arguments = ("run", "count-frequency", "--virtual", "--size", 2_000, "--runs", runs, *options)
    assert call(*arguments)[0] in (0, 1)
    (path,) = runs.glob(f"*/{TRACE}")
    return path


def test_a_run_goes_on_in_a_next_file_when_one_has_the_size(call: Any, tmp_path: Path) -> None:
    """The same bytes in many files, each as large as was said; by default in one."""
    one = journal(call, tmp_path / "one")
    many = journal(call, tmp_path / "many", "--segment-size", "4KiB")
    assert (len(files(one)), len(files(many)) > 4) == (1, True)
    assert whole(many) == one.read_bytes()
    assert max(file.stat().st_size for file in files(many)) <= 4096
    assert len(files(journal(call, tmp_path / "never", "--segment-size", "0"))) == 1


def test_the_summary_says_where_all_of_the_trace_is(call: Any, tmp_path: Path) -> None:
    """Whoever copies the first file should know that there are others."""
    options = ("--virtual", "--size", 2_000, "--runs", tmp_path)
    said = []
    for size in ("0", "4KiB"):
        _, out, _ = call("run", "count-frequency", *options, "--segment-size", size)
        said.append(" ".join(out.split()))
    further = max(len(files(path)) for path in tmp_path.glob(f"*/{TRACE}")) - 1
    assert "further file" not in said[0]
    assert f"{TRACE} and {further} further files" in said[1]


@pytest.mark.parametrize("size", ["x", "4 chickens", "-1", "nan"])
def test_what_is_no_size_is_refused_before_anything_is_made(
    call: Any, tmp_path: Path, size: str
) -> None:
    """In one line that says what would be one."""
    runs = tmp_path / "runs"
    code, out, err = call(
        "run", "count-frequency", "--virtual", "--runs", runs, "--segment-size", size
    )
    assert (code, out) == (2, "")
    assert err == f"digmon: --segment-size must be a size such as 64MiB, 1GiB or 0, got {size!r}\n"
    assert not runs.exists()
