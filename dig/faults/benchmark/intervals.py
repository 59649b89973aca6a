"""Shares with intervals, and summaries of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, fmean, quantiles
from typing import Any

from dig.tasks.experiment.intervals import LEVEL, Mean, mean

_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


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
    if mean is None:
        return None
    return {"mean": mean.mean, "low": mean.low, "high": mean.high, "count": mean.count}
