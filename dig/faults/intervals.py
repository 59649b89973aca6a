"""Shares with intervals, and summaries of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, quantiles
from typing import Any

from dig.tasks.tables_intervals import LEVEL, Mean

_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


def share(flags: Sequence[bool]) -> Mean | None:
    """How large a share of some flags is set, with its 95 % interval by Wilson's score.

    Unlike a bootstrap it has a width where all flags are the same.

    Args:
        flags: One for each run; none: there is no share.
    """
    if not flags:
        return None
    count = len(flags)
    part = sum(flags) / count
    middle = (part + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * sqrt(part * (1 - part) / count + _Z**2 / (4 * count**2))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    # Rounding must not put the share itself outside.
    return Mean(part, min(low, part), max(high, part), count)


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
