"""CountFrequency: how often does each value occur in an array? (paper, section 6)

Nobody is shown the whole array. A problem names a *part* of it, `[start, stop]` with the first
element at 0 and `stop` not included, and tools turn a part into smaller parts or, if it is short
enough for one message, into its elements. Only `CountFrequency.score` knows the true counts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from math import hypot, sqrt
from types import MappingProxyType
from typing import Any

from dig.errors import SettingsError
from dig.messages import Output
from dig.runtime.agents import Tool

from .task import Score

TASK = "count-frequency"
VALUES = tuple(range(10))
MOST_COUNT = 10**15
"""More than any array has; the error of a larger count could become too large for a float."""

GOAL = (
    "Count how often each value occurs in an array of integers. You hold a part of it, [start, "
    "stop] with stop not included; tools cut a part into smaller ones and read short ones. "
    'Submit {"counts": {"0": 12, "1": 7, ...}} with the counts in the whole array.'
)


class CountFrequency:
    """One array, the problem of counting it, the tools to read it, and the scorer.

    >>> task = CountFrequency(size=5000, seed=1)
    >>> tools = task.tools()
    >>> tools["split"]([0, 5000], 5)[-1]
    [4000, 5000]
    >>> len(tools["raw_data"]([4000, 5000]))
    1000
    >>> task.score({"counts": {}}).valid
    True

    Attributes:
        name: `count-frequency`.
        data: What the data are, in words.
        size: How many elements the array has.
        seed: What it was made from, together with `size`.
        most_per_message: How many elements one message may carry: at most half of the array, so
            that no single message carries all of it.
    """

    name = TASK
    data = "random numbers, made from the seed"

    def __init__(self, size: int, seed: int, *, most_per_message: int = 1000) -> None:
        """Make the array; equal arguments make an equal one, on any machine.

        Args:
            size: How many elements; 2 at least, so that there is something to put together.
            seed: Any integer.
            most_per_message: How many elements one message may carry, unless that is more than
                half of the array.

        Raises:
            SettingsError: `size` or `most_per_message` is too small.
        """
        if size < 2:
            raise SettingsError(f"an array of {size} elements cannot be split; make it 2 or more")
        if most_per_message < 1:
            raise SettingsError(f"a message cannot carry {most_per_message} elements at most")
        self.size = size
        self.seed = seed
        self.most_per_message = min(most_per_message, (size + 1) // 2)
        self._data = _array(size, seed)
        self._truth = Counter(self._data)

    def problem(self, *to: str) -> Output:
        """The event that starts a run: a description and a handle, never the data.

        Args:
            to: The agents that are given the problem.
        """
        payload = {
            "task": TASK,
            "goal": GOAL,
            "values": list(VALUES),
            "part": [0, self.size],
            "most_per_message": self.most_per_message,
        }
        return Output(payload, to, "problem")

    def tools(self) -> Mapping[str, Tool]:
        """What agents may call: `size`, `split` and `raw_data`.

        They hold the array and nothing else of this object, so that no path leads from what an
        agent is given to the scorer.
        """
        return _tools(self._data, self.most_per_message)

    def score(self, answer: object) -> Score:
        """Compare an answer with the true counts.

        Args:
            answer: ``{"counts": {value: count}}``, other keys are ignored. A value is an integer
                or, as in JSON, its decimal digits; one that is missing counts as 0.
        """
        if answer is None:
            return Score(False, reason="there is no answer")
        try:
            counts = _read_counts(answer)
        except ValueError as error:
            return Score(False, reason=str(error))
        errors = [counts.get(value, 0.0) - self._truth[value] for value in VALUES]
        return Score(True, hypot(*errors) / sqrt(len(VALUES)))


def _array(size: int, seed: int) -> tuple[int, ...]:
    """An array in which some values are several times as frequent as others."""
    # Python keeps what a string seeds the same on all machines, unlike what `hash` gives.
    chance = random.Random(f"{TASK} {seed} {size}")
    weights = [1.0 + 4.0 * chance.random() for _ in VALUES]
    return tuple(chance.choices(VALUES, weights, k=size))


def _tools(data: tuple[int, ...], most: int) -> Mapping[str, Tool]:
    def size(part: list[int]) -> int:
        """How many elements a part has."""
        start, stop = _bounds(part, len(data))
        return stop - start

    def split(part: list[int], pieces: int) -> list[list[int]]:
        """Cut a part into pieces of equal length, or as nearly equal as can be, in order."""
        start, stop = _bounds(part, len(data))
        if type(pieces) is not int or not 1 <= pieces <= stop - start:
            raise ValueError(f"{part!r} can be cut into 1 to {stop - start} pieces, not {pieces!r}")
        cuts = [start + (stop - start) * i // pieces for i in range(pieces + 1)]
        return [list(piece) for piece in pairwise(cuts)]

    def raw_data(part: list[int]) -> list[int]:
        """The elements of a part that is short enough for one message."""
        start, stop = _bounds(part, len(data))
        if stop - start > most:
            raise ValueError(
                f"{part!r} has {stop - start} elements, and a message carries {most} at most: "
                "split it first"
            )
        return list(data[start:stop])

    return MappingProxyType({"size": size, "split": split, "raw_data": raw_data})


def _bounds(part: Any, size: int) -> tuple[int, int]:
    if not isinstance(part, list | tuple) or [type(bound) for bound in part] != [int, int]:
        raise ValueError(f"a part is a list of two integers, [start, stop], not {part!r}")
    start, stop = part
    if not 0 <= start < stop <= size:
        raise ValueError(f"a part lies within [0, {size}] and is not empty, unlike {part!r}")
    return start, stop


def _read_counts(answer: object) -> dict[int, float]:
    """The counts in an answer.

    Raises:
        ValueError: It is not in the documented shape; the message says where.
    """
    counts = answer.get("counts") if isinstance(answer, Mapping) else None
    if not isinstance(counts, Mapping):
        raise ValueError('an answer is an object with the key "counts", an object of counts')
    read: dict[int, float] = {}
    for key, count in counts.items():
        value = _KNOWN.get(str(key)) if type(key) in (int, str) else None
        if value is None or value in read:
            raise ValueError(f"{key!r} is not a value of the array, or is there twice")
        if type(count) not in (int, float) or not 0 <= count <= MOST_COUNT:
            raise ValueError(f"the count of {key!r} is not a number from 0 to {MOST_COUNT}")
        read[value] = float(count)
    return read


_KNOWN = {str(value): value for value in VALUES}
