"""CountFrequency: how often does each value occur in an array? (paper, section 6)"""

from __future__ import annotations

import random

from dig.errors import SettingsError

from .frequency import FrequencyTask

TASK = "count-frequency"
VALUES = tuple(range(10))


class CountFrequency(FrequencyTask):
    """An array, the problem of counting the values, the tools, and the scorer.

    >>> task = CountFrequency(size=5000, seed=1)
    >>> tools = task.tools()
    >>> tools["split"]([0, 5000], 5)[-1]
    [4000, 5000]
    >>> len(tools["raw_data"]([4000, 5000]))
    1000
    >>> task.score({"counts": {}}).valid
    True
    """

    name = TASK
    goal = (
        "Count how often each value occurs in an array of integers. You hold a part of it, [start, "
        "stop] with stop not included; tools cut a part into smaller ones and read short ones. "
        'Submit an object with the key "counts": an object from each value to its count in the '
        "whole array."
    )
    unit = "elements"
    values = VALUES
    data = "random numbers, made from the seed"

    def __init__(self, size: int, seed: int, *, most_per_message: int = 1000) -> None:
        """Make the array; equal arguments make equal arrays, on any machine.

        Args:
            size: The number of elements; 2 at least, so that there is something to put together.
            seed: Any integer.
            most_per_message: The number of elements that one message may carry, unless that is more
                than half of the array.

        Raises:
            SettingsError: `size` or `most_per_message` is too small.
        """
        if size < 2:
            raise SettingsError(
                f"size must be at least 2, so that the array can be split, got {size}"
            )
        # Python keeps what a string seeds the same on all machines, unlike what `hash` gives.
        chance = random.Random(f"{TASK} {seed} {size}")
        weights = [1.0 + 4.0 * chance.random() for _ in VALUES]
        array = chance.choices(VALUES, weights, k=size)
        super().__init__(array, array, most_per_message)
