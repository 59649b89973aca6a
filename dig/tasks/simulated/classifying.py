"""The reading of posts: a simulated agent sorts them by their words, with some confusion.

The classifier is real, and small: each topic has some words that speak for it, and a word weighs
the more, the fewer topics have it. It was made by hand, from no data, and reads nothing but the
text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any

from dig.runtime.keyed_random import KeyedRandom
from dig.tasks.newsgroups import TASK
from dig.tasks.newsgroups_posts import GROUPS, sections

from .profile import Profile
from .reading import miscounted

_WORD = re.compile(r"[a-z0-9]+")


@lru_cache(maxsize=20_000)
def topic(text: str) -> str | None:
    """The topic of a post by its words; ``None`` if no word speaks for a topic.

    >>> topic("The shuttle reached its orbit around the moon.")
    'sci.space'
    """
    weights = _weights()
    scores: defaultdict[str, float] = defaultdict(float)
    for word in sorted(set(_WORD.findall(text.lower()))):
        for group, weight in weights.get(word, {}).items():
            scores[group] += weight
    return max(GROUPS, key=lambda group: scores.get(group, 0.0)) if scores else None


@lru_cache(maxsize=1)
def _weights() -> dict[str, dict[str, float]]:
    """For each word the topics that it speaks for, with its weight."""
    words = {
        group: set(" ".join(lines).split()) for group, lines in sections("keywords.txt").items()
    }
    topics = Counter(word for some in words.values() for word in some)
    weights: dict[str, dict[str, float]] = {}
    for group, some in words.items():
        for word in some:
            weights.setdefault(word, {})[group] = log(len(GROUPS) / topics[word])
    return weights


@dataclass(frozen=True, slots=True)
class Posts:
    """Reads the posts of Newsgroups; a wrong one is taken for the chunk's most frequent topic."""

    task: str = TASK

    def is_element(self, element: Any) -> bool:
        """Whether the value is a text."""
        return isinstance(element, str)

    def is_value(self, name: str) -> bool:
        """Whether the value is a topic."""
        return name in GROUPS

    def most(self, profile: Profile) -> int:
        """The posts that it likes to read in one go."""
        return profile.posts_at_once

    def seconds(self, profile: Profile, elements: int) -> float:
        """Seconds that it takes to read so many."""
        return elements * profile.read_post_s

    def count(
        self, data: Sequence[str], profile: Profile, draws: KeyedRandom, index: int
    ) -> Counter[str]:
        """The counts that it gets for a chunk; a post whose words say nothing is skipped."""
        seen = [found for found in map(topic, data) if found is not None]
        counts = Counter(seen)
        usual = max(GROUPS, key=lambda group: counts[group])
        wrong = profile.confusion_for(len(data))
        return miscounted(seen, wrong, draws, index, lambda chance: usual)
