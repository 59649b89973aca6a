"""How a simulated agent counts: element by element, and the worse the longer the chunk."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from dig.runtime.draws import Draws

from .profile import Profile


def count(data: Sequence[int], profile: Profile, draws: Draws, index: int) -> Counter[int]:
    """The counts that an agent with this profile gets for a chunk that it counts in one go.

    Args:
        data: The chunk's elements.
        profile: How many mistakes it makes.
        draws: The random numbers of its activation.
        index: Which of the activation's chunks this is.
    """
    wrong = profile.error_for(len(data))
    if wrong == 0:
        return Counter(data)
    # One draw seeds a generator, for a hash an element would be slow.
    chance = random.Random(int(draws.uniform("count", index) * (1 << 56)))
    values = sorted(set(data))
    counts: Counter[int] = Counter()
    for value in data:
        if chance.random() >= wrong:
            counts[value] += 1
        elif chance.random() < 0.5:  # taken for another value; else it is skipped
            counts[chance.choice(values)] += 1
    return counts
