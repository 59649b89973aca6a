"""How often an answer is right, by the share of its agent: a logistic map of two numbers.

`python -m bench.calibration` fitted them to failures with known causes, of kinds of faults that
the signs do not know.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from math import exp, log

FURTHEST = 0.01
"""A share nearer to 0 or 1 says no more than this one."""


def log_odds(share: float) -> float:
    """Return the logarithm of the odds of a share."""
    within = min(max(share, FURTHEST), 1 - FURTHEST)
    return log(within / (1 - within))


def probability(share: float, slope: float, intercept: float) -> float:
    """Map a share to how often such an answer is right."""
    return 1 / (1 + exp(-slope * log_odds(share) - intercept))


@cache
def _fitted() -> tuple[float, float]:
    text = files("dig.diagnosis.attribution").joinpath("calibration.json").read_text("utf-8")
    numbers = json.loads(text)
    return numbers["slope"], numbers["intercept"]


def calibrated(share: float) -> float:
    """Return how often an answer with a share was right, in two digits."""
    return round(probability(share, *_fitted()), 2)
