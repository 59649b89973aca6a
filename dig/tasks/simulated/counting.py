"""How a simulated agent counts numbers: one by one, and with mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dig.runtime.keyed_random import KeyedRandom
from dig.tasks.count_frequency import TASK, VALUES

from .profile import Profile
from .reading import miscounted

_TEXTS = frozenset(map(str, VALUES))


@dataclass(frozen=True, slots=True)
class Numbers:
    """Reads the integers of CountFrequency; a wrong one is taken for any value of the chunk."""

    task: str = TASK

    def is_element(self, element: Any) -> bool:
        """Whether it is an integer."""
        return type(element) is int

    def is_value(self, name: str) -> bool:
        """Whether it is the text of a value of the array."""
        return name in _TEXTS

    def most(self, profile: Profile) -> int:
        """How many it likes to count in one go."""
        return profile.chunk_length

    def seconds(self, profile: Profile, elements: int) -> float:
        """How long it counts so many."""
        return elements * profile.read_s

    def count(
        self, data: Sequence[int], profile: Profile, draws: KeyedRandom, index: int
    ) -> Counter[str]:
        """The counts that it gets for a chunk; see `Reading`."""
        values = sorted(set(data))
        counts = miscounted(
            data, profile.error_for(len(data)), draws, index, lambda chance: chance.choice(values)
        )
        return Counter({str(value): number for value, number in counts.items()})
