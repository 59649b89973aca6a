"""Intervals, exact tests and corrections, beside their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import comb
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.coverage import false_alarms, mended
from dig._util.intervals import wilson
from dig.lab.experiment.grid import Grid, paper_tasks
from dig.lab.experiment.results import Row
from dig.lab.experiment.row_measures import CALLS, SECONDS, VALID, Measure
from dig.lab.experiment.run import ExecutionOptions, carry_out_cells
from dig.lab.experiment.statistics import (
    Mean,
    holm,
    mean,
    mean_difference,
    share,
    sign_flip,
    spread,
)


def ends(found: Mean | None) -> tuple[float, float]:
    assert found is not None and found.low is not None and found.high is not None
    return found.low, found.high


# --- shares ---


@pytest.mark.parametrize(
    ("set_", "of", "low", "high"),
    [(0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129), (10, 10, 0.6915, 1.0), (1, 1, 0.025, 1.0)],
)
def test_an_interval_is_clopper_and_pearsons(set_: int, of: int, low: float, high: float) -> None:
    """The values of the textbook."""
    found = share([i < set_ for i in range(of)])
    assert found is not None and found.mean == set_ / of
    assert ends(found) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0)],
)
def test_wilsons_interval_is_that_of_the_textbook(
    hits: int, of: int, low: float, high: float
) -> None:
    """It is narrower than Clopper and Pearson's."""
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-4)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=60))
def test_a_share_lies_in_its_interval(parts: list[float]) -> None:
    """Whether all parts are flags or not; rounding puts it nowhere else."""
    found = share(parts)
    assert found is not None
    low, high = ends(found)
    assert 0 <= low <= found.mean <= high <= 1


def test_equals_have_an_interval_with_a_width() -> None:
    """Three runs in which nothing was right do not say that nothing ever is."""
    for value in (0.0, 0.5, 1.0):
        low, high = ends(share([value] * 3))
        assert low <= value <= high and high - low > 0.5


def test_nothing_has_no_share_no_mean_and_no_spread() -> None:
    """No runs are not a share of zero."""
    assert share([]) is None
    assert mean([]) is None
    assert spread([]) is None


def test_a_spread_is_median_and_quartiles() -> None:
    """Of one value, three times that value."""
    assert spread([4.0, 1.0, 2.0, 3.0, 5.0]) == (3.0, 2.0, 4.0)
    assert spread([7.0]) == (7.0, 7.0, 7.0)


# --- means ---


def test_one_value_has_no_interval() -> None:
    one = mean([3.0])
    assert one is not None and (one.low, one.high) == (None, None)


def test_zeros_alone_have_an_interval_as_wide_as_their_bounds_allow() -> None:
    """Of n zeros the upper end is the bound times 1 - 0.025 ** (1 / n), as for a share of 0."""
    low, high = ends(mean([0.0] * 20, -1.0, 30.0))
    most = 1 - 0.025 ** (1 / 20)
    assert high == pytest.approx(30 * most, rel=0.1)
    assert low == pytest.approx(-most, rel=0.1)


def test_the_interval_of_flags_as_numbers_is_nearly_that_of_a_share() -> None:
    """With the bounds 0 and 1 both are the same bound."""
    flags = [1.0] * 14 + [0.0] * 26
    assert ends(mean(flags, 0, 1)) == pytest.approx(ends(share(flags)), abs=0.02)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40),
    st.floats(0, 1e6),
)
def test_a_wider_bound_never_narrows_an_interval(values: list[float], more: float) -> None:
    """And the mean always lies inside."""
    found = mean(values, min(values), max(values))
    wider = mean(values, min(values) - more, max(values) + more)
    assert found is not None
    (low, high), (lower, higher) = ends(found), ends(wider)
    assert lower <= low <= found.mean <= high <= higher


def test_a_difference_of_one_of_six_settings_has_its_part_in_the_bound() -> None:
    """If no seed shows any, the interval is a sixth as wide."""
    alone, together = (ends(mean_difference([0.0] * 20, 6.0, n)) for n in (1, 6))
    assert alone == pytest.approx([6 * end for end in together])


# --- tests ---


def by_enumeration(differences: Sequence[float]) -> float:
    """The definition: each choice of signs by itself."""
    distance = abs(sum(differences))
    sums = [
        abs(sum(sign * one for sign, one in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(one >= distance - 1e-9 for one in sums) / len(sums)


@given(st.lists(st.integers(-9, 9), max_size=9))
def test_a_sign_flip_test_counts_all_choices_of_signs(differences: list[int]) -> None:
    """Differences of 0 change nothing."""
    assert sign_flip(differences) == pytest.approx(by_enumeration(differences))


@given(st.lists(st.sampled_from([0.0, 1.27, -3.1, 0.83, 9.41, -14.77, 2.003]), max_size=9))
def test_a_sign_flip_test_of_fractions_is_that_of_rounded_ones(differences: list[float]) -> None:
    """So p lies between those of a slightly larger and a slightly smaller sum."""
    total = sum(map(abs, differences))
    distance = abs(sum(differences))
    sums = [
        abs(sum(sign * one for sign, one in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    near = total / 200
    least, most = (sum(one >= distance + by for one in sums) / len(sums) for by in (near, -near))
    assert least <= sign_flip(differences) <= most


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
def test_a_sign_flip_test_of_flags_is_mcnemars(gained: int, lost: int, same: int) -> None:
    """Exact: twice the tail of a binomial distribution with probability 1/2."""
    n, most = gained + lost, max(gained, lost)
    tail = sum(comb(n, i) for i in range(most, n + 1)) / 2**n
    expected = min(1.0, 2 * tail)
    assert sign_flip([1.0] * gained + [-1.0] * lost + [0.0] * same) == pytest.approx(expected)


@given(st.lists(st.integers(-100, 100), max_size=30))
def test_a_p_value_depends_on_no_order_and_no_side(differences: list[int]) -> None:
    """The methods may be named in either order."""
    p = sign_flip(differences)
    assert 0 < p <= 1
    assert sign_flip([-one for one in reversed(differences)]) == p


def test_holms_correction_is_that_of_the_textbook() -> None:
    """The smallest times all, the next times one less, and never less than one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=20))
def test_a_correction_never_helps_and_keeps_the_order(p_values: list[float]) -> None:
    """And gives no more than Bonferroni's."""
    corrected = holm(p_values)
    for p, one in zip(p_values, corrected, strict=True):
        assert p <= one <= min(1.0, p * len(p_values)) + 1e-12
    ranked = sorted(zip(p_values, corrected, strict=True))
    assert [one for _, one in ranked] == sorted(one for _, one in ranked)


# --- of runs ---


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Row, ...]:
    """Runs of one method with many seeds."""
    grid = Grid(
        tasks=paper_tasks(["count-frequency"]), methods=("mas",), agents=(3,),
        seeds=tuple(range(1, 121)),
    )  # fmt: skip
    cells = [cell for cell in grid.cells() if cell.level == "easy"]
    return carry_out_cells(cells, tmp_path_factory.mktemp("runs"), ExecutionOptions()).rows


@pytest.mark.parametrize("measure", [VALID, SECONDS, CALLS], ids=lambda one: one.name)
def test_one_method_is_seldom_called_different_from_itself(
    plain: tuple[Row, ...], measure: Measure
) -> None:
    """In at most 6.5 % of 1,000 comparisons with other seeds; docs/lab/experiments/coverage.md has
    more of them."""
    assert false_alarms(plain, measure, 20) <= 0.065


def test_a_planted_difference_of_numbers_is_found(plain: tuple[Row, ...]) -> None:
    """Of one standard deviation, with 30 pairs that are independent: in nine of ten samples."""
    more = stdev(row.seconds for row in plain if row.valid)
    found = false_alarms(plain, SECONDS, 30, times=200, planted=lambda value, _: value + more)
    assert found >= 0.9


def test_a_planted_difference_of_flags_is_found(plain: tuple[Row, ...]) -> None:
    """0.6 against 0.8, with 60 pairs that are independent: in more than half of the samples."""
    rows = [replace(row, valid=row.seed % 10 < 6) for row in plain]
    assert false_alarms(rows, VALID, 60, times=200, planted=mended) >= 0.5
