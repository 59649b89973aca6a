"""Simulated agents miscount as much as the paper's did, and stay as they were calibrated."""

from __future__ import annotations

import pytest

from dig.tasks.profile import Profile
from tests.calibration import PAPER, cell

from .test_newsgroups import REAL, needs_data


def test_the_calibrated_parameters_are_left_alone() -> None:
    """Whoever changes one makes every table and comparison of before a different one."""
    profile = Profile()
    numbers = (profile.error, profile.error_growth, profile.most_error)
    posts = (profile.confusion, profile.confusion_growth, profile.most_confusion)
    assert (numbers, posts) == ((0.65, 0.0, 0.65), (0.97, 5.0, 0.52))


@pytest.mark.parametrize("size", PAPER["count-frequency"])
def test_one_agent_miscounts_numbers_as_in_the_paper(size: int) -> None:
    """To a tenth, on the average of 30 runs."""
    expected = PAPER["count-frequency"][size]
    assert cell("count-frequency", size, 30).rmse == pytest.approx(expected, rel=0.1)


@needs_data
@pytest.mark.parametrize("size", PAPER["newsgroups"])
def test_one_agent_confuses_real_posts_as_in_the_paper(size: int) -> None:
    """To a tenth, on the average of 60 runs."""
    expected = PAPER["newsgroups"][size]
    assert cell("newsgroups", size, 60, REAL).rmse == pytest.approx(expected, rel=0.1)
