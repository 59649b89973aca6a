"""Effects of methods: seeds are the unit, tests are corrected, and words follow from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dig.lab.experiment.effects import (
    MeasuredEffect,
    compare,
    headline,
    pairs,
    paper_in_words,
    shortcomings,
)
from dig.lab.experiment.experiment_report import HEADLINE, NO_BETTER, NOTHING, all_tables
from dig.lab.experiment.grid import Grid, TaskGrid
from dig.lab.experiment.results import Row
from dig.lab.experiment.row_measures import CALLS, COMPLETE, RMSE, SECONDS, VALID, shown_measures
from dig.lab.experiment.samples import Pool, Samples
from dig.lab.experiment.statistics import Mean, holm, sign_flip

SIZES = {"easy": 1000, "medium": 5000, "hard": 10_000}


def row(method: str, seed: int, level: str = "easy", **changes: Any) -> Row:
    """A run of CountFrequency by six agents."""
    usual: dict[str, Any] = {
        "run": f"{method} {seed} {level}", "task": "count-frequency", "size": SIZES[level],
        "level": level, "agents": 6, "agents_are": "simulated", "data_are": "numbers",
        "method": method, "seed": seed, "clock": "virtual", "outcome": "submitted", "reason": "",
        "valid": True, "complete": True, "rmse": 50.0, "seconds": 10.0, "calls": 8, "notes": 0,
    }  # fmt: skip
    return Row(**{**usual, **changes})


def runs(count: int, method: str, **changes: Any) -> list[Row]:
    return [row(method, seed, **changes) for seed in range(1, count + 1)]


# --- seeds are the unit ---


def test_settings_of_a_seed_are_averaged_before_seeds_are_counted() -> None:
    """Three levels of five seeds are five differences, not fifteen."""
    rows = [
        row(method, seed, level, calls=8 + (method == "dig") * by * seed)
        for by, level in enumerate(SIZES)
        for seed in range(1, 6)
        for method in ("mas", "dig")
    ]
    samples = Samples(rows)
    (pool,) = samples.pools()
    found = samples.difference(pool, ("dig", "mas"), CALLS)
    assert found == pytest.approx([1.0, 2.0, 3.0, 4.0, 5.0])
    effect = compare(samples, [pool], [("dig", "mas")], [CALLS])[0].effects["calls"]
    assert effect.difference is not None
    assert (effect.difference.count, effect.p) == (5, 2 / 2**5)


def test_only_seeds_are_compared_that_both_methods_have() -> None:
    """RMSE and seconds of a seed count where both methods have a valid answer."""
    rows = [*runs(4, "mas", seconds=10.0), *runs(3, "dig", seconds=13.0)]
    rows[1] = replace(rows[1], valid=False, rmse=None)
    samples = Samples(rows)
    assert samples.difference(samples.pools()[0], ("dig", "mas"), SECONDS) == [3.0, 3.0]
    assert len(samples.difference(samples.pools()[0], ("dig", "mas"), VALID)) == 3


def test_a_large_task_does_not_decide_about_rmse_alone() -> None:
    """Together, each setting counts by its own mean."""
    rows = [
        row(method, seed, level, rmse=large * (1.0 if method == "mas" else 0.5))
        for level, large in (("easy", 3.0), ("hard", 3000.0))
        for seed in (1, 2, 3)
        for method in ("mas", "dig")
    ]
    samples = Samples(rows)
    found = samples.difference(samples.pools()[0], ("dig", "mas"), samples.relative_rmse())
    assert found == pytest.approx([-0.5 / 0.75] * 3)


def test_the_order_of_rows_changes_nothing() -> None:
    """Nor does it matter which process was done first."""
    rows = [*runs(6, "mas"), *(row("dig", seed, calls=seed) for seed in range(1, 7))]
    one, other = (
        compare(found, found.pools(), pairs(("mas", "dig")), shown_measures(rows))
        for found in (Samples(rows), Samples(rows[::-1]))
    )
    assert one == other


# --- tests are corrected ---


def test_p_values_are_corrected_within_a_measure_over_the_table() -> None:
    """A measure that was not measured takes no part."""
    rows = [
        *runs(8, "mas"),
        *(row("judge", seed, calls=8 + seed % 3) for seed in range(1, 9)),
        *(row("dig", seed, calls=9) for seed in range(1, 9)),
    ]
    samples = Samples(rows)
    compared = compare(samples, samples.pools(), pairs(("mas", "judge", "dig")), [CALLS, VALID])
    raw = [sign_flip(samples.difference(one.pool, one.pair, CALLS)) for one in compared]
    assert [one.effects["calls"].p for one in compared] == raw
    assert [one.effects["calls"].corrected for one in compared] == holm(raw)
    assert {one.effects["valid"].corrected for one in compared} == {1.0}


def test_each_method_is_compared_with_none_and_dig_with_each_rival() -> None:
    """Also with methods that nobody knows yet."""
    assert pairs(("mas", "watchdog", "new", "dig")) == [
        ("watchdog", "mas"), ("new", "mas"), ("dig", "mas"), ("dig", "watchdog"), ("dig", "new"),
    ]  # fmt: skip
    assert pairs(("mas", "judge")) == [("judge", "mas")]


# --- in words ---


@pytest.mark.parametrize(
    ("paper", "mean", "corrected", "verdict"),
    [
        (0.3, 0.2, 0.01, "met"),
        (-0.3, 0.2, 0.01, "contradicted"),
        (-0.3, 0.2, 0.06, "open"),
        (0.0, 0.2, 0.01, "no claim"),
        (None, 0.2, 0.01, "no claim"),
    ],
)
def test_a_direction_is_met_only_if_the_corrected_test_says_so(
    paper: float | None, mean: float, corrected: float, verdict: str
) -> None:
    """Whatever the interval is."""
    assert MeasuredEffect(Mean(mean, -1, 1, 9), 0.001, corrected, paper).verdict == verdict


def test_the_papers_directions_are_told_measure_by_measure() -> None:
    """The paper's RMSE of the easy task with six agents: 38.66 and 38.76; 0.1 more with dig."""
    rows = [*runs(10, "mas"), *runs(10, "dig", rmse=60.0)]
    samples = Samples(rows)
    told = paper_in_words(compare(samples, samples.pools(), [("dig", "mas")], [RMSE, VALID]))
    assert told == [
        "RMSE, dig against mas: met for teams of six.",
        "valid, dig against mas: no claim for teams of six.",
    ]


def test_the_headline_says_what_healing_brings_and_costs() -> None:
    """The words of the issue: shares before and after, seconds and calls more, and the seeds."""
    rows = [
        *(row("mas", seed, valid=seed > 23, complete=seed > 34) for seed in range(1, 101)),
        *(row("dig", s, complete=s > 2, seconds=13.1, calls=10) for s in range(1, 101)),
    ]
    assert headline(Samples(rows), ("mas", "dig")) == [
        "teams of six: valid 0.77 -> 1.00, complete 0.66 -> 0.98, 3.1 s and 2.0 calls more "
        "(100 seeds; 95 % intervals in tables.md)"
    ]


def test_the_headline_of_few_seeds_is_a_quick_look() -> None:
    """Without the usual methods it compares the last with the first."""
    rows = [*runs(10, "a", calls=5, seconds=11), *runs(10, "b", calls=3, seconds=12)]
    assert headline(Samples(rows), ("a", "b")) == [
        "teams of six: valid 1.00 -> 1.00, complete 1.00 -> 1.00, 1.0 s more, 2.0 calls less "
        "(a quick look: 10 seeds tell little)"
    ]


def test_a_single_method_has_no_headline() -> None:
    """Nothing is compared."""
    assert headline(Samples(runs(3, "mas")), ("mas",)) == []


def told_about(rows: list[Row]) -> list[str]:
    samples = Samples(rows)
    compared = compare(samples, samples.pools(), [("dig", "watchdog")], [VALID, COMPLETE, CALLS])
    return shortcomings(compared, [("dig", "watchdog")])


def test_where_dig_is_no_better_than_a_rival_is_said() -> None:
    """By the corrected test, with what it costs more."""
    (line,) = told_about([*runs(20, "watchdog"), *runs(20, "dig", calls=11)])
    assert line == (
        "teams of six, dig against watchdog (which knows no graph): no better in valid "
        "(0.00, Holm 1.000); no better in complete (0.00, Holm 1.000); more calls "
        "(+3.00, Holm <0.001)."
    )


def test_a_rival_that_is_better_is_called_better() -> None:
    """And one that may be worse is not called worse."""
    (line,) = told_about([*runs(20, "watchdog"), *runs(20, "dig", valid=False, complete=False)])
    assert "worse in valid (-1.00, Holm <0.001); worse in complete" in line
    rows = [*runs(20, "watchdog"), *runs(20, "dig")]
    rows[0] = replace(rows[0], valid=False)
    (line,) = told_about(rows)
    assert "not shown to be better in valid (+0.05, Holm 1.000)" in line


def test_nothing_is_said_of_a_rival_that_is_worse_in_everything() -> None:
    """Then there is nothing to be said first."""
    assert told_about([*runs(20, "watchdog", valid=False, complete=False), *runs(20, "dig")]) == []


# --- tables ---


def grid(count: int) -> Grid:
    return Grid(
        tasks=(TaskGrid(task="count-frequency", sizes=(1000,)),),
        agents=(6,),
        methods=("mas", "judge", "dig"),
        seeds=tuple(range(1, count + 1)),
    )


def test_each_table_of_few_seeds_is_marked_as_a_quick_look() -> None:
    """And none of many."""
    rows = [one for method in ("mas", "judge", "dig") for one in runs(4, method)]
    quick, _ = all_tables(grid(4), Samples(rows))
    assert all("A quick look: 4 seeds tell little." in table.notes for table in quick)
    usual, _ = all_tables(grid(100), Samples(rows))
    assert not any("quick look" in note for table in usual for note in table.notes)


def test_old_results_have_tables_without_what_they_lack() -> None:
    """Rows from before there was `complete` and `notes`."""
    rows = [
        replace(one, complete=None, notes=None)
        for method in ("mas", "dig")
        for one in runs(3, method)
    ]
    tables, words = all_tables(grid(3), Samples(rows))
    assert not any({"complete", "notes"} & {*table.columns} for table in tables)
    assert "complete" not in words[HEADLINE][0]


def test_tokens_are_a_column_if_some_run_used_any() -> None:
    """Simulated agents use none."""
    rows = [one for method in ("mas", "dig") for one in runs(3, method)]
    for usage, there in (({}, False), ({"input_tokens": 7.0, "output_tokens": 1.0}, True)):
        used = [replace(one, usage=usage) for one in rows]
        tables, _ = all_tables(grid(3), Samples(used))
        assert ("tokens" in tables[0].columns) == there


def test_the_words_above_the_tables_name_rivals_first() -> None:
    """Or say that there is nothing to be named."""
    rows = [*runs(20, "mas"), *runs(20, "judge"), *runs(20, "dig")]
    _, words = all_tables(grid(20), Samples(rows))
    assert "dig against judge: no better in valid" in words[NO_BETTER][0]
    worse = [
        replace(one, valid=False, complete=False, rmse=None) if one.method == "judge" else one
        for one in rows
    ]
    _, words = all_tables(grid(20), Samples(worse))
    assert words[NO_BETTER] == [NOTHING]


def test_a_cell_has_its_parts_as_columns() -> None:
    """For a CSV file: as many as there are heads."""
    effect = MeasuredEffect(Mean(0.5, 0.25, 0.75, 9), 0.004, 0.02, 0.3)
    assert f"{effect}" == "+0.50 [+0.25, +0.75] p 0.004, Holm 0.020 (+0.30)"
    assert effect.columns() == ["0.5", "0.25", "0.75", "9", "0.004", "0.02", "0.3"]
    assert len(MeasuredEffect(None).columns()) == len(MeasuredEffect.parts)
    assert f"{MeasuredEffect(None)}" == "-"


def test_a_pool_is_called_by_what_it_has() -> None:
    """One task, or all."""
    samples = Samples([row("mas", 1), row("mas", 1, "hard")])
    (pool,) = samples.pools()
    assert (pool.task, pool.level) == ("count-frequency", "all levels")
    assert Pool(pool.settings[:1]).level == "easy"
