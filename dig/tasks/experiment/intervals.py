"""Means and shares with intervals, the same in any process: every draw follows from a label."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import NormalDist, fmean, quantiles
from typing import Any

RESAMPLES = 1000
LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


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


def share(parts: Sequence[float]) -> Mean | None:
    """The mean of some numbers from 0 to 1, with its 95 % interval by Wilson's score.

    Unlike a bootstrap's it has a width where all numbers are the same. Of flags it is as wide as
    it has to be, of other numbers wider: they vary less than flags with the same mean.

    Args:
        parts: One for each run; none: there is no mean.
    """
    if not parts:
        return None
    count = len(parts)
    part = fmean(parts)
    middle = (part + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * sqrt(part * (1 - part) / count + _Z**2 / (4 * count**2))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    # Rounding must not put the share itself outside.
    return Mean(part, min(low, part), max(high, part), count)


def mark(parts: Sequence[float], label: str) -> Mean | None:
    """The mean of a metric from 0 to 1: Wilson's interval for flags and for equals, a bootstrap's
    for others.

    Args:
        parts: One for each run; none: there is no mean.
        label: What they are of; it seeds the resampling.
    """
    if {0, 1}.issuperset(parts) or len({*parts}) == 1:
        return share(parts)
    return mean(parts, label)


def clustered(clusters: Sequence[Sequence[float]], label: str) -> Mean | None:
    """The mean of a metric from 0 to 1 over runs, of which some belong together.

    Args:
        clusters: The values of each cluster, such as the runs with one twin. If each has one, the
            interval is that of `mark`; else a bootstrap over clusters.
        label: What they are of; it seeds the resampling.
    """
    values = [value for some in clusters for value in some]
    if len(values) == len(clusters) or len({*values}) < 2:
        return mark(values, label)
    chance, sums = random.Random(label), [(sum(some), len(some)) for some in clusters]
    means = []
    for _ in range(RESAMPLES):
        drawn = chance.choices(sums, k=len(sums))
        means.append(sum(total for total, _ in drawn) / sum(count for _, count in drawn))
    means.sort()
    cut = round(RESAMPLES * (1 - LEVEL) / 2)
    return Mean(fmean(values), means[cut], means[-1 - cut], len(values))


def spread(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Median, lower and upper quartile of some values; ``None`` if there are none."""
    if not values:
        return None
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return middle, low, high


def as_json(mean: Mean | None) -> dict[str, Any] | None:
    """A mean with its interval, as plain JSON."""
    return asdict(mean) if mean else None
