"""Runs in a list: which, in what order, and as a table of 80 columns."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from dig.traces.overview.listing import SORTS, Selection, ordered, print_list
from dig.traces.overview.summary import RunSummary

RUNS = [
    RunSummary("r/a", "ended", task="count", method="dig", outcome="submitted", agents=6,
               findings={"ET": 2, "DL": 1}, score={"rmse": 3.0}, began="2026-01-02T00:00:00"),
    RunSummary("r/b", "ended", task="count", method="mas", outcome="timeout", agents=6,
               findings={"ET": 1}, score=0.5, began="2026-01-01T00:00:00",
               cost={"total_tokens": 1200}),
    RunSummary("r/c", "in progress", task="news", agents=3),
    RunSummary("r/d", "broken", problem="r/d:3: the line is not JSON"),
]  # fmt: skip


def names(**chosen: Any) -> str:
    return "".join(run.name for run in RUNS if Selection(**chosen).has(run))


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        ({}, "abcd"),
        ({"task": "count"}, "ab"),
        ({"method": "mas"}, "b"),
        ({"outcome": "submitted"}, "a"),
        ({"outcome": "in progress"}, "c"),
        ({"outcome": "broken"}, "d"),
        ({"patterns": ("ET",)}, "ab"),
        ({"patterns": ("ET", "DL")}, "a"),
        ({"agents": 6, "task": "count", "method": "dig"}, "a"),
        ({"task": "none"}, ""),
    ],
)
def test_filters_leave_what_is_meant(chosen: dict[str, Any], left: str) -> None:
    """Every filter asks for one thing, and all of them must hold."""
    assert names(**chosen) == left


def test_a_run_that_was_cut_off_is_told_by_its_outcome_if_it_has_one() -> None:
    """It has one if it went on without its journal."""
    assert Selection(outcome="cut off").has(RunSummary("r/e", "cut off"))
    assert Selection(outcome="timeout").has(RunSummary("r/f", "cut off", outcome="timeout"))


@pytest.mark.parametrize("by", SORTS)
@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_not_known_comes_last_either_way(by: str, reverse: bool) -> None:
    """A run without a score is neither the best nor the worst one."""
    found = ordered(RUNS, by, reverse=reverse)
    keys = [SORTS[by](run) for run in found]
    known = [key for key in keys if key is not None]
    assert keys == known + [None] * (len(keys) - len(known))
    assert known == sorted(known, reverse=reverse)
    assert sorted(run.name for run in found) == list("abcd")


def shown(runs: list[RunSummary], width: int = 80) -> list[str]:
    out = io.StringIO()
    print_list(Console(file=out, width=width), runs)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_table_says_what_each_run_was() -> None:
    """One line a run, the reason of what is broken below, and no wider than a terminal."""
    lines = shown(RUNS)
    assert lines[0].split() == ["run", "date", "task", "method", "agents", "outcome", "findings",
                                "score", "tokens"]  # fmt: skip
    assert lines[1].split() == ["a", "2026-01-02", "count", "dig", "6", "submitted",
                                "DL:1", "ET:2", "3"]  # fmt: skip
    assert "broken: r/d:3: the line is not JSON" in lines
    assert lines[-1] == "4 runs"
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("width", [20, 40, 60, 70, 80, 100, 200])
def test_a_narrow_terminal_breaks_no_word(width: int) -> None:
    """A row is one line; what has no room is left out as a whole, or ends with an ellipsis."""
    names = [f"20260102-00000{n}-abcdef" for n in range(3)]
    runs = [
        RunSummary(f"r/{name}", "ended", task=f"a task with a long name {n}", method="dig" * n,
                   outcome="submitted", agents=n + 1, findings={"ET": 2, "DL": 1, "MC/late": 3},
                   score=0.12345, seconds=123.4, records=9, cost={"total_tokens": 1_234_567},
                   began="2025-01-02")
        for n, name in enumerate(names)
    ]  # fmt: skip
    lines = shown(runs, width)
    assert lines[4] == "3 runs"
    assert max(map(len, lines[:4])) <= width
    whole = shown(runs, 300)
    for line, full in zip(lines[:4], whole[:4], strict=True):
        for word in line.split():
            assert word in full.split() or word.endswith("…")
    if width >= 60:
        assert [line.split()[0] for line in lines[1:4]] == names
        assert all("submitted" in line for line in lines[1:4])
    assert (lines[-1] == "3 runs") == (width == 200)


def test_what_all_runs_share_is_said_once() -> None:
    """A column in which every run has the same is no column."""
    lines = shown(RUNS[:2])
    assert "task" not in lines[0]
    assert lines[-1] == "2 runs, all with task count"


def test_names_are_made_safe_for_a_terminal() -> None:
    """A run may be called anything."""
    text = "\n".join(shown([RunSummary("r/\x1b[31m", task="[bold]\x07", outcome="submitted")]))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]\\u0007" in text
