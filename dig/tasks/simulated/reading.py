"""How simulated agents read: what differs between counting numbers and sorting posts by topic."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

from dig.runtime.keyed_random import KeyedRandom

from .profile import Profile

_T = TypeVar("_T", bound=Hashable)


class Reading(Protocol):
    """How an agent reads the elements of a task, and counts the values in them."""

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
        """How many elements an agent with this profile likes to read in one go."""
        ...

    def seconds(self, profile: Profile, elements: int) -> float:
        """How long it reads so many."""
        ...

    def count(
        self, data: Sequence[Any], profile: Profile, draws: KeyedRandom, index: int
    ) -> Counter[str]:
        """The counts that it gets for a chunk that it reads in one go, by the values' texts.

        Args:
            data: The chunk's elements.
            profile: How many mistakes it makes.
            draws: The random numbers of its activation.
            index: Which of the activation's chunks this is.
        """
        ...


def miscounted(
    seen: Sequence[_T], wrong: float, draws: KeyedRandom, index: int,
    mistaken: Callable[[random.Random], _T],
) -> Counter[_T]:  # fmt: skip
    """Counts with mistakes: half of the wrong elements are skipped, half are taken for others.

    Args:
        seen: The values of a chunk's elements.
        wrong: The probability of a mistake about each.
        draws: The random numbers of the activation.
        index: Which of the activation's chunks this is.
        mistaken: Draws what an element is taken for.
    """
    if wrong == 0:
        return Counter(seen)
    # One draw seeds a generator, for a hash an element would be slow.
    chance = random.Random(int(draws.uniform("count", index) * (1 << 56)))
    counts: Counter[_T] = Counter()
    for value in seen:
        if chance.random() >= wrong:
            counts[value] += 1
        elif chance.random() < 0.5:
            counts[mistaken(chance)] += 1
    return counts
