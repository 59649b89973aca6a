"""Verdicts about a hypothesis by repeated replays, and significance.

A row is the result of a replay; ``None`` stands for one that could not be made:

    {"good": True, "fulfilled": True, "progress": 0.8}

`good` and `progress` are the goal's; `fulfilled` says that the change was carried out. In paired
arms replay k without the change is the control of replay k with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from statistics import median
from typing import Any, NamedTuple

from dig._util.intervals import wilson
from dig.errors import SettingsError
from dig.show.document import Reason, Verdict

Row = Mapping[str, Any]

LEAST_GAIN = 0.2
"""The smallest gain in progress that counts; with fewer than five milestones: one of them."""

# 0.6 is 0.2 more than 0.4, although the difference of these two floats is a little less.
ROUNDING = 1e-9


class _Repeat(NamedTuple):
    """A counting replay, and the progress of the control."""

    row: Row
    control: float | None


def verdict(
    changed: Sequence[Row | None],
    unchanged: Sequence[Row | None],
    milestones: int = 5,
    paired: bool = True,
    n: int = 3,
) -> tuple[Verdict, Reason | None]:
    """Judge a hypothesis; returns the verdict, and the reason of an `inconclusive` verdict.

    Args:
        changed: The replays with the change.
        unchanged: The replays without it, from the same record.
        milestones: The number of milestones.
        paired: Whether replay k of both draws the same random numbers. Then a repeat counts if its
            control is not good (the first counts always: its control is the recorded run), and of
            up to 3n repeats the first n that count are taken. Otherwise all count.
        n: The number of repeats that are to count.

    Raises:
        SettingsError: `milestones` or `n` is below 1.
    """
    if milestones < 1 or n < 1:
        raise SettingsError(
            f"milestones and n must be at least 1, got milestones={milestones} and n={n}"
        )
    changed_rows = [row for row in changed if row is not None]
    controls = [row for row in unchanged if row is not None]
    is_whole = len(changed_rows) == len(changed) > 0 and len(controls) == len(unchanged) > 0
    if not is_whole or (paired and len(changed_rows) != len(controls)):
        return "inconclusive", "cannot be replayed"
    if paired:
        # The first control is the recorded run, which failed: so that pair counts always.
        pairs = [*zip(changed_rows, controls, strict=True)][: 3 * n]
        counting = [pair for k, pair in enumerate(pairs) if k == 0 or not pair[1]["good"]]
        repeats = [_Repeat(row, control["progress"]) for row, control in counting[:n]]
    else:
        # Without pairs each replay is measured against the typical control.
        progress = [row["progress"] for row in controls if row["progress"] is not None]
        repeats = [_Repeat(row, median(progress) if progress else None) for row in changed_rows]
    if len(repeats) < min(2, n):
        return "inconclusive", "flaky"
    good_controls = 0 if paired else sum(row["good"] for row in controls)
    return _judge(repeats, good_controls, max(1 / milestones, LEAST_GAIN))


def _judge(
    repeats: Sequence[_Repeat], good_controls: int, gain: float
) -> tuple[Verdict, Reason | None]:
    """Judge the counting repeats.

    Args:
        repeats: The replays with the change.
        good_controls: The number of good replays without it.
        gain: The progress beyond the control's that counts.
    """
    # A replay in which the change did not come about says nothing for it, however it ended.
    most = -(-2 * len(repeats) // 3)  # two thirds, rounded up
    fulfilled = [repeat for repeat in repeats if repeat.row["fulfilled"]]
    good = sum(repeat.row["good"] for repeat in fulfilled)
    better = sum(repeat.row["good"] or _gains(repeat, gain) for repeat in fulfilled)
    if good >= most:
        if good - good_controls >= most:
            return "validated", None
        return "inconclusive", "flaky"
    if better >= most:
        return "partial", None
    if len(fulfilled) < most:
        return "inconclusive", "not carried out"
    if better == 0 and not any(repeat.row["good"] for repeat in repeats):
        return "refuted", None
    return "inconclusive", "mixed"


def _gains(repeat: _Repeat, gain: float) -> bool:
    progress = repeat.row["progress"]
    if progress is None or repeat.control is None:
        return False
    return bool(progress - repeat.control >= gain - ROUNDING)


def interval(good: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of the share of good replays.

    Args:
        good: The number of good replays.
        of: The number of replays; of none nothing is known.

    >>> [round(bound, 2) for bound in interval(3, 3)]
    [0.44, 1.0]
    """
    return wilson(good, of) if of else (0.0, 1.0)


def fisher(good: int, of: int, controls_good: int, controls: int) -> float | None:
    """Return the one-sided p-value of Fisher's exact test of the two arms.

    Args:
        good: The number of good replays with the change.
        of: The number of replays with the change.
        controls_good: The number of good replays without it.
        controls: The number of replays without it.

    Returns:
        The probability of so many good replays with the change, or more, if it had no effect;
        ``None``, if an arm is empty.

    >>> fisher(3, 3, 0, 3)
    0.05
    """
    if not of or not controls:
        return None
    together = good + controls_good
    ways = (comb(of, k) * comb(controls, together - k) for k in range(good, min(of, together) + 1))
    return sum(ways) / comb(of + controls, together)
