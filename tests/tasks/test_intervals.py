"""Shares with intervals, and summaries."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.tasks.experiment.intervals import clustered, mark, share, spread


@pytest.mark.parametrize(
    ("set_", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0)],
)
def test_an_interval_is_wilsons(set_: int, of: int, low: float, high: float) -> None:
    """The values of the textbook."""
    found = share([i < set_ for i in range(of)])
    assert found is not None and found.low is not None and found.high is not None
    assert found.mean == set_ / of
    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-4)


@given(st.lists(st.booleans(), min_size=1))
def test_a_share_lies_in_its_interval(flags: list[bool]) -> None:
    """Rounding puts it nowhere else."""
    found = share(flags)
    assert found is not None and found.low is not None and found.high is not None
    assert 0 <= found.low <= found.mean <= found.high <= 1


def test_equals_have_an_interval_with_a_width() -> None:
    """Three runs in which nothing was right do not say that nothing ever is."""
    for value in (0.0, 0.5, 1.0):
        found = mark([value] * 3, "it")
        assert found is not None and found.low is not None and found.high is not None
        assert found.mean == value
        assert found.high - found.low > 0.5


@given(st.lists(st.floats(0, 1), min_size=2))
def test_a_mark_lies_in_its_interval(parts: list[float]) -> None:
    """Whichever interval it is."""
    found = mark(parts, "it")
    assert found is not None and found.low is not None and found.high is not None
    assert 0 <= found.low <= found.high <= 1
    if {0, 1}.issuperset(parts):
        assert found == share(parts)


def test_nothing_has_no_share_and_no_spread() -> None:
    """No runs are not a share of zero."""
    assert share([]) is None
    assert spread([]) is None


def test_a_spread_is_median_and_quartiles() -> None:
    """Of one value, three times that value."""
    assert spread([4.0, 1.0, 2.0, 3.0, 5.0]) == (3.0, 2.0, 4.0)
    assert spread([7.0]) == (7.0, 7.0, 7.0)


def test_intervals_over_clusters_cover_the_truth() -> None:
    """In a simulation: runs with one twin are alike, so that intervals over runs are too narrow."""
    truth, covered, covered_by_runs, trials = 0.5, 0, 0, 200
    chance = random.Random("clusters")
    for trial in range(trials):
        clusters = [[float(chance.random() < truth)] * 5 for _ in range(30)]
        found = clustered(clusters, f"trial {trial}")
        single = mark([value for some in clusters for value in some], f"trial {trial}")
        assert found is not None and found.low is not None and found.high is not None
        assert single is not None and single.low is not None and single.high is not None
        covered += found.low <= truth <= found.high
        covered_by_runs += single.low <= truth <= single.high
    assert covered >= 0.88 * trials
    assert covered_by_runs < 0.75 * trials


def test_clusters_of_one_are_runs() -> None:
    """Then the interval is Wilson's."""
    assert clustered([[1.0], [0.0], [1.0]], "x") == mark([1.0, 0.0, 1.0], "x")
