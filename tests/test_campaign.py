"""The campaign: it counts, says what fails and how to have it again, and ends cleanly."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.detectors import standard
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph

from . import campaign, comparison
from .campaign import Tally, batches, main
from .comparison import compare, find
from .oracle import Row
from .shrinking import mended, shrink
from .strategies import traces


@pytest.fixture
def without_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the detectors has got lost."""
    monkeypatch.setattr(
        comparison, "standard", lambda: [d for d in standard() if d.pattern != "DL"]
    )


def test_a_campaign_counts_patterns_and_features(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where all is equal it ends with 0, and leaves no file."""
    out = tmp_path / "out"
    assert main(["--seed", "5", "--count", "60", "--jobs", "1", "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    counts = dict(line.strip().rsplit(maxsplit=1) for line in lines if line.startswith("  "))
    assert int(counts["DL"]) > 5 and int(counts["session"]) > 5
    assert " in 60 traces, " in lines[-1] and lines[-1].endswith("all equal the oracle's")
    assert not out.exists()


@pytest.mark.nightly
def test_several_processes_see_what_one_sees() -> None:
    """The traces are the same, however they are shared out."""
    alone, shared = Tally(), Tally()
    for part in batches(3, 120, 1):
        alone.add(part)
    for part in batches(3, 120, 2):
        shared.add(part)
    assert alone == shared and alone.traces == 120


@pytest.mark.usefixtures("without_deadlock")
def test_what_fails_is_made_small_and_can_be_had_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with 1; the command that it prints fails in the same way, the file is a trace."""
    out = str(tmp_path)
    assert main(["--count", "30", "--jobs", "1", "--out", out]) == 1
    told = capsys.readouterr().out.splitlines()
    again = next(line for line in told if line.startswith("  again: ")).split()
    assert again[1:4] == ["python", "-m", "tests.campaign"]
    assert main([*again[4:], "--jobs", "1", "--out", out]) == 1
    seed = again[again.index("--seed") + 1]
    path = tmp_path / f"seed-{seed}.dig.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) < 10 and not compare(rows).agree
    assert any(line.startswith("  by the oracle:   [{'pattern': 'DL'") for line in told)


@pytest.mark.usefixtures("without_deadlock")
def test_a_campaign_in_which_everything_fails_ends_early(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten failures are enough to look at."""
    monkeypatch.setattr(campaign, "shrink", lambda rows, fails: rows)
    assert main(["--jobs", "1", "--out", str(tmp_path)]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("it ended early, after 10 failures: 10 traces FAILED")
    assert len(list(tmp_path.iterdir())) == 10


def test_ctrl_c_ends_it_with_what_was_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts of the batches that are done are told; exit status 130."""
    looks = iter([Tally(traces=50, findings=7)])

    def look(numbers: Any) -> Tally:
        try:
            return next(looks)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(campaign, "look", look)
    assert main(["--count", "200", "--jobs", "1"]) == 130
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("7 findings in 50 traces") and "before the other 150" in last


@pytest.mark.parametrize("wrong", ["--count=0", "--jobs=0", "--seed=-1", "--count=many"])
def test_wrong_arguments_are_told(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, and the usage on standard error."""
    with pytest.raises(SystemExit) as ended:
        main([wrong])
    assert ended.value.code == 2
    assert "usage: python -m tests.campaign" in capsys.readouterr().err


@given(traces(), st.randoms(use_true_random=False))
def test_any_part_of_a_trace_can_be_mended(rows: list[Row], rng: random.Random) -> None:
    """Whatever is left out, the rest becomes a valid trace, numbered without a gap."""
    part = [row for row in rows[1:] if rng.random() < 0.7]
    found = mended([rows[0], *part])
    InteractionGraph.of(map(decode, found))
    assert [row["t"] for row in found] == list(range(len(found)))
    assert mended(rows) == rows


def test_a_trace_is_shrunk_to_what_it_needs() -> None:
    """Of a long trace with a rerouted event, what is left is that event and its reroutes."""

    def is_raised(rows: list[Row]) -> bool:
        return any(one["pattern"] == "ER" for one in find(rows))

    rows = next(rows for n in range(100) if is_raised(rows := comparison.numbered_trace(n)))
    small = shrink(rows, is_raised)
    assert is_raised(small) and len(small) < len(rows)
    assert {row["kind"] for row in small} <= {"run", "emit", "deliver", "start", "end"}
    assert all(not is_raised(mended(small[:n] + small[n + 1 :])) for n in range(1, len(small)))
