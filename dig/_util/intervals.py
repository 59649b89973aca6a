"""Intervals of shares."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2  # beyond one end of an interval


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Wilson's interval of a share: narrower, and for few runs not always at the stated level."""
    z, p = NormalDist().inv_cdf(1 - TAIL), hits / count
    middle = (p + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * sqrt(p * (1 - p) / count + z**2 / (4 * count**2))
    # Rounding must not put the share itself outside.
    return max(0.0, min(middle - half, p)), min(1.0, max(middle + half, p))
