"""The readings of simulated agents: the protocol, and the reading of numbers.

`classifying` has the reading of posts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from dig.runtime.keyed_random import KeyedRandom
from dig.tasks.count_frequency import TASK, VALUES

from .profile import Profile

_T = TypeVar("_T", bound=Hashable)


class Reading(Protocol):
    """Reads the elements of a task, and counts the values."""

    @property
    def task(self) -> str:
        """The name of the task."""
        ...

    def is_element(self, element: Any) -> bool:
        """Whether something can be an element of the data."""
        ...

    def is_value(self, name: str) -> bool:
        """Whether something can be the text of a value."""
        ...

    def most(self, profile: Profile) -> int:
        """The most elements of one chunk for an agent with this profile."""
        ...

    def seconds(self, profile: Profile, elements: int) -> float:
        """Seconds of reading time."""
        ...

    def count(
        self, data: Sequence[Any], profile: Profile, draws: KeyedRandom, index: int
    ) -> Counter[str]:
        """The agent's counts for a chunk, by the values' texts.

        Args:
            data: The chunk's elements.
            profile: The agent's habits, and so its rate of mistakes.
            draws: The random numbers of its activation.
            index: The index of this chunk among those of the activation.
        """
        ...


def miscount(
    values: Sequence[_T], wrong: float, draws: KeyedRandom, index: int,
    mistaken: Callable[[random.Random], _T],
) -> Counter[_T]:  # fmt: skip
    """Counts with mistakes: half of the wrong elements are skipped, half are taken for others.

    Args:
        values: The values of a chunk's elements.
        wrong: The probability of a mistake about each.
        draws: The random numbers of the activation.
        index: The index of this chunk among those of the activation.
        mistaken: Draws the value that an element is taken for.
    """
    if wrong == 0:
        return Counter(values)
    # One draw seeds a generator, for a hash an element would be slow.
    chance = random.Random(int(draws.uniform("count", index) * (1 << 56)))
    counts: Counter[_T] = Counter()
    for value in values:
        if chance.random() >= wrong:
            counts[value] += 1
        elif chance.random() < 0.5:
            counts[mistaken(chance)] += 1
    return counts


_TEXTS = frozenset(map(str, VALUES))


@dataclass(frozen=True, slots=True)
class Numbers:
    """Reads the integers of CountFrequency; an error becomes any value of the chunk."""

    task: str = TASK

    def is_element(self, element: Any) -> bool:
        """Whether the value is an integer."""
        return type(element) is int

    def is_value(self, name: str) -> bool:
        """Whether the value is the text of a value of the array."""
        return name in _TEXTS

    def most(self, profile: Profile) -> int:
        """The most numbers of one chunk."""
        return profile.chunk_length

    def seconds(self, profile: Profile, elements: int) -> float:
        """Seconds of counting time."""
        return elements * profile.read_s

    def count(
        self, data: Sequence[int], profile: Profile, draws: KeyedRandom, index: int
    ) -> Counter[str]:
        """The agent's counts for a chunk; see `Reading`."""
        values = sorted(set(data))
        counts = miscount(
            data, profile.error_for(len(data)), draws, index, lambda chance: chance.choice(values)
        )
        return Counter({str(value): number for value, number in counts.items()})
