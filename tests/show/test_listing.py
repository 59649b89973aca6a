"""Runs in a list: which, in what order, and as a table of 80 columns."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import pytest
from rich.console import Console

from dig.show.runs.listing import SORTS, RunFilter, print_list, sort_runs
from dig.show.runs.summary import RunSummary

RUNS = [
    RunSummary("r/a", "ended", task="count", method="dig", outcome="submitted", agents=6,
               verdict="Incomplete answer", grade="bad", headline="Incomplete answer: `x` did it.",
               who=["x", "y"], note="mine\nand theirs",
               findings={"ET": 2, "DL": 1}, score={"rmse": 3.0}, began="2026-01-02T00:00:00"),
    RunSummary("r/b", "ended", task="count", method="mas", outcome="timeout", agents=6,
               findings={"ET": 1}, score=0.5, began="2026-01-01T00:00:00",
               cost={"total_tokens": 1200}),
    RunSummary("r/c", "in progress", task="news", agents=3),
    RunSummary("r/d", "broken", problem="r/d:3: the line is not JSON"),
]  # fmt: skip


def names(**chosen: Any) -> str:
    return "".join(run.name for run in RUNS if RunFilter(**chosen).has(run))


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
        ({"verdict": "Incomplete answer"}, "a"),
        ({"verdict": "timeout"}, "b"),
        ({"agent": "y"}, "a"),
        ({"agent": "z"}, ""),
    ],
)
def test_filters_leave_what_is_meant(chosen: dict[str, Any], left: str) -> None:
    """Every filter asks for one thing, and all of them must hold."""
    assert names(**chosen) == left


def test_a_run_that_was_cut_off_is_told_by_its_outcome_if_it_has_one() -> None:
    """It has one if it went on without its journal."""
    assert RunFilter(outcome="cut off").has(RunSummary("r/e", "cut off"))
    assert RunFilter(outcome="timeout").has(RunSummary("r/f", "cut off", outcome="timeout"))


@pytest.mark.parametrize("by", SORTS)
@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_not_known_comes_last_either_way(by: str, reverse: bool) -> None:
    """A run without a score is neither the best nor the worst one."""
    found = sort_runs(RUNS, by, reverse=reverse)
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
    assert lines[0].split() == ["run", "date", "task", "method", "agents", "ended", "findings",
                                "score", "tokens"]  # fmt: skip
    assert lines[1].split() == ["a", "2026-01-02", "count", "dig", "6", "Incomplete", "answer",
                                "DL:1", "ET:2", "rmse", "3"]  # fmt: skip
    assert lines[2:4] == ["  Incomplete answer: `x` did it.", "  mine and theirs"]
    assert "broken: r/d:3: the line is not JSON" in lines
    assert lines[-1] == "4 runs"
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("width", [20, 40, 60, 70, 80, 100, 200])
def test_a_narrow_terminal_breaks_no_word(width: int) -> None:
    """What has no room is left out as a whole, or ends with an ellipsis, and stands below."""
    names = [f"20260102-00000{n}-abcdef" for n in range(3)]
    runs = [
        RunSummary(f"r/{name}", "ended", task=f"a task with a long name {n}", method="dig" * n,
                   outcome="submitted", agents=n + 1, findings={"ET": 2, "DL": 1, "MC/late": 3},
                   score=0.12345, seconds=123.4, records=9, cost={"total_tokens": 1_234_567},
                   began="2025-01-02")
        for n, name in enumerate(names)
    ]  # fmt: skip
    head, *lines, foot = shown(runs, width)
    assert foot == "3 runs"
    assert max(map(len, (head, *lines))) <= width
    whole = shown(runs, 300)
    assert len(whole) == 5
    starts = [i for i, line in enumerate(lines) if not line.startswith("  ")] + [len(lines)]
    rows = [lines[a:b] for a, b in pairwise(starts)]
    for (row, *below), full in zip(rows, whole[1:4], strict=True):
        assert all(word in full.split() or word.endswith("…") for word in row.split())
        told = f"{row} {' '.join(below).replace(',', '').replace('  ', ' ')}"
        wrapped = told.replace(" ", "")  # a very narrow line may break a name
        assert all(word.replace(",", "") in wrapped.replace(",", "") for word in full.split())
        assert bool(below) == (width < 200)
    if width >= 60:
        assert [row[0].split()[0] for row in rows] == names
        assert all("submitted" in row[0] for row in rows)


def test_alarms_are_errors_and_warnings_that_no_policy_silences() -> None:
    """They are counted apart from all findings, and runs can be sorted by them."""
    quiet = RunSummary("r/a", "ended", findings={"RSP": 9}, worth={"notice": 5, "silenced": 4})
    loud = RunSummary("r/b", "ended", findings={"ET": 3}, worth={"error": 1, "warning": 2})
    head, *lines, _ = shown([loud, quiet])
    assert head.split() == ["run", "ended", "alarms", "findings"]
    assert [line.split() for line in lines] == [
        ["b", "ended", "3", "ET:3"],
        ["a", "ended", "RSP:9"],
    ]
    assert [run.name for run in sort_runs([loud, quiet], "alarms")] == ["a", "b"]


def test_a_usual_list_needs_one_line_a_run_at_80_columns() -> None:
    """As `digmon run` leaves them: execution ids, one task, two methods, a few findings."""
    runs = [
        RunSummary(f"r/20261121-22142{n}-cfc798", "ended", task="count-frequency", method=method,
                   outcome="submitted", agents=6, findings={"DL": 1, "ET": 2, "CLA": n}, score=44.2,
                   seconds=52.7, records=9, began="2026-11-21")
        for n, method in enumerate(("mas", "dig"), 3)
    ]  # fmt: skip
    assert shown(runs) == [
        "run                    method agents ended     findings        score   time",
        "20261121-221423-cfc798 mas         6 submitted CLA:3 DL:1 ET:2  44.2 52.7 s",
        "20261121-221424-cfc798 dig         6 submitted CLA:4 DL:1 ET:2  44.2 52.7 s",
        "2 runs, all with task count-frequency",
    ]


def test_what_the_only_run_has_is_said_below() -> None:
    """A column that has one cell takes the room of two."""
    assert shown(RUNS[:1])[-1] == "1 run, with task count, method dig"


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
