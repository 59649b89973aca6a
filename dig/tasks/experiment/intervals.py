"""Means with bootstrap intervals, the same in any process: every draw follows from a label."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

RESAMPLES = 1000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds.

    Attributes:
        mean: The mean.
        low: The lower end of its 95 % interval; ``None``: one value has none.
        high: The upper end.
        count: Over how many values.
    """

    mean: float
    low: float | None
    high: float | None
    count: int

    @property
    def sign(self) -> int:
        """-1 or 1 if the whole interval is on that side of zero; 0 if that cannot be said."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > 0) - (self.high < 0)


def mean(values: Sequence[float], label: str) -> Mean | None:
    """The mean of some values with its percentile bootstrap interval.

    Args:
        values: One for each seed; none: there is no mean.
        label: What they are of; it seeds the resampling, so that no order of work matters.
    """
    if not values:
        return None
    middle, count = fmean(values), len(values)
    if count == 1:
        return Mean(middle, None, None, 1)
    if min(values) == max(values):
        return Mean(middle, middle, middle, count)
    chance = random.Random(label)  # what a string seeds is the same on all machines
    means = sorted(fmean(chance.choices(values, k=count)) for _ in range(RESAMPLES))
    cut = round(RESAMPLES * (1 - LEVEL) / 2)
    return Mean(middle, means[cut], means[-1 - cut], count)
