"""Means, shares and paired differences over seeds: intervals, and exact tests.

The seed is the unit: runs with the same seed have the same problems, so they are averaged first,
and two methods are compared seed by seed. Nothing here depends on the process or on the order of
work, and nothing is random: the weights of the bootstrap are always the same.
`docs/lab/experiments/coverage.md` has the measured levels of all intervals and tests.

- `share` of flags: Clopper and Pearson's interval, which keeps its level for any share and count.
- `mean` of numbers: a Bayesian bootstrap that counts one value more than there are, at the bound
  of what a value can be (Gaffke's bound). The added value stands for what the seeds did not show:
  where most of them show exactly 0, an interval from their spread alone would be far too narrow.
- `sign_flip` of paired differences: how many of all choices of signs give a sum at least as far
  from 0. All choices are counted. Of flags this is McNemar's exact test.
- `holm`: the correction for several tests.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import exp, lgamma, log, sqrt
from operator import mul
from statistics import NormalDist, fmean, quantiles, stdev
from typing import Any

from dig._util.intervals import TAIL

DRAWS = 1000
MOST_WEIGHTED = 1000
"""Of more values than that the normal approximation is as good, and takes less memory."""

STEPS = 5000
"""Into so many steps the sum of all differences is divided, to count the choices of signs."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds.

    Attributes:
        low: The lower end of its 95 % interval; ``None``: one value has none.
        high: The upper end.
        count: Over how many values.
    """

    mean: float
    low: float | None
    high: float | None
    count: int


# --- intervals ---


def share(parts: Sequence[float]) -> Mean | None:
    """The mean of numbers from 0 to 1 with the interval.

    Args:
        parts: One for each run; none: there is no mean. If all are flags, the interval is that of
            Clopper and Pearson.
    """
    if not {0, 1}.issuperset(parts):
        return mean(parts, 0.0, 1.0)
    if not parts:
        return None
    count, hits = len(parts), round(sum(parts))
    low = _bisect(lambda p: _at_least(hits, count, p) < TAIL) if hits else 0.0
    high = 1 - _bisect(lambda q: _at_least(count - hits, count, q) < TAIL) if hits < count else 1.0
    return Mean(hits / count, low, high, count)


def mean(
    values: Sequence[float], low: float | None = None, high: float | None = None
) -> Mean | None:
    """The mean of numbers with the interval.

    Args:
        values: One for each seed; none: there is no mean.
        low: The smallest possible value, as far as is known; ``None``: half of the values'
            range below the smallest one.
        high: The largest possible value, in the same way. Values beyond a bound move it.
    """
    if not values:
        return None
    middle, count = fmean(values), len(values)
    if count == 1:
        return Mean(middle, None, None, 1)
    least, most = min(values), max(values)
    half = (most - least) / 2
    low = least - half if low is None else min(low, least)
    high = most + half if high is None else max(high, most)
    # All values at their only possible value: nothing to weigh.
    if low == high:
        return Mean(middle, middle, middle, count)
    if count > MOST_WEIGHTED:
        width = NormalDist().inv_cdf(1 - TAIL) * stdev(values) / sqrt(count)
        return Mean(middle, middle - width, middle + width, count)
    lows, highs = [], []
    # Sizes are powers of two, so that few tables of weights serve all counts.
    for weights, total in zip(_weights(1 << count.bit_length()), _totals(count), strict=True):
        added, weighted = weights[-1], sum(map(mul, values, weights))
        lows.append((weighted + added * low) / (total + added))
        highs.append((weighted + added * high) / (total + added))
    cut = round(DRAWS * TAIL)
    # Rounding must not put the mean itself outside.
    bottom, top = min(sorted(lows)[cut], middle), max(sorted(highs)[-1 - cut], middle)
    return Mean(middle, bottom, top, count)


def mean_difference(differences: Sequence[float], most: float, settings: int = 1) -> Mean | None:
    """The mean of paired differences with the interval.

    Args:
        differences: One for each seed.
        most: The largest possible difference in one setting from 0.
        settings: Over how many settings each was averaged. Of several, a difference that was not
            seen has its part in the mean of a seed; and half of the range of the seeds' means is
            the least that the bounds lie beyond them.
    """
    low, high = -most / settings, most / settings
    if settings > 1 and differences:
        half = (max(differences) - min(differences)) / 2
        low = max(-most, min(low, min(differences) - half))
        high = min(most, max(high, max(differences) + half))
    return mean(differences, low, high)


@lru_cache(maxsize=4)
def _weights(count: int) -> list[array[float]]:
    """Rows of exponential numbers: divided by the sum, any part of a row weighs a sample."""
    # A fixed seed: the same values have the same interval.
    chance = random.Random(1)
    return [array("d", (chance.expovariate(1.0) for _ in range(count))) for _ in range(DRAWS)]


@lru_cache(maxsize=128)
def _totals(count: int) -> list[float]:
    """The sum of the first `count` numbers of each row."""
    return [sum(weights[:count]) for weights in _weights(1 << count.bit_length())]


def _at_least(hits: int, count: int, p: float) -> float:
    """The probability of at least so many hits among independent tries of probability `p`."""
    # In logarithms, since binomial coefficients overflow a float.
    log_count = lgamma(count + 1)
    return sum(
        exp(
            log_count
            - lgamma(i + 1)
            - lgamma(count - i + 1)
            + i * log(p)
            + (count - i) * log(1 - p)
        )
        for i in range(hits, count + 1)
    )


def _bisect(is_below: Callable[[float], bool]) -> float:
    """Find the number between 0 and 1 up to which a condition holds."""
    low, high = 0.0, 1.0
    # Fifty halvings are as fine as a float between 0 and 1.
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low


# --- tests ---


def sign_flip(differences: Sequence[float]) -> float:
    """The exact two-sided p-value of paired differences, if signs were random.

    It is the share of all choices of signs whose sum is at least as far from 0 as the given one.
    Differences that are not whole are rounded to a fraction of their sum, which a change of signs
    does not alter, so the test of the rounded ones is exact, too.

    Args:
        differences: One for each seed; none, or only zeros: there is no evidence, p is 1.
    """
    sizes = _as_steps(differences)
    total, distance = sum(map(abs, sizes)), abs(sum(sizes))
    if not distance:
        return 1.0
    # The number of choices for each sum of the positive ones, as digits of one large number.
    bits = len(sizes) + 1
    choices = 1
    for size in map(abs, sizes):
        choices += choices << (size * bits)
    far = choices >> ((total + distance) // 2 * bits)
    # The sum of digits is the remainder by the base less one, as with nines in decimals.
    return min(1.0, 2 * (far % ((1 << bits) - 1)) / (1 << len(sizes)))


def _as_steps(differences: Sequence[float]) -> list[int]:
    """The differences except 0 as whole numbers, in proportion."""
    total = sum(map(abs, differences))
    if not total:
        return []
    is_whole = total <= STEPS and all(float(difference).is_integer() for difference in differences)
    steps = (
        round(difference if is_whole else difference / total * STEPS) for difference in differences
    )
    return [step for step in steps if step]


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values, corrected by Holm for being looked at together, in the same order."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        # Corrected p-values keep the order of the raw ones.
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


# --- summaries ---


def spread(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Median, lower and upper quartile of some values; ``None`` if there are none."""
    if not values:
        return None
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return middle, low, high


def as_json(mean: Mean | None) -> dict[str, Any] | None:
    """A mean with the interval, as plain JSON."""
    return asdict(mean) if mean else None
