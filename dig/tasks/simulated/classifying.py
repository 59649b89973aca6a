"""The reading of posts: a simulated agent sorts posts by words, with some confusion.

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

from .message_reading import miscount
from .profile import Profile

_WORD = re.compile(r"[a-z0-9]+")


@lru_cache(maxsize=20_000)
def topic(text: str) -> str | None:
    """The topic of a post by the words; ``None`` without a telling word.

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
    words = {
        group: set(" ".join(lines).split()) for group, lines in sections("keywords.txt").items()
    }
    topics = Counter(word for vocabulary in words.values() for word in vocabulary)
    weights: dict[str, dict[str, float]] = {}
    for group, vocabulary in words.items():
        for word in vocabulary:
            weights.setdefault(word, {})[group] = log(len(GROUPS) / topics[word])
    return weights


@dataclass(frozen=True, slots=True)
class Posts:
    """Reads the posts of Newsgroups; an error becomes the chunk's most frequent topic."""

    task: str = TASK

    def is_element(self, element: Any) -> bool:
        """Whether the value is a text."""
        return isinstance(element, str)

    def is_value(self, name: str) -> bool:
        """Whether the value is a topic."""
        return name in GROUPS

    def most(self, profile: Profile) -> int:
        """The most posts of one chunk."""
        return profile.posts_at_once

    def seconds(self, profile: Profile, elements: int) -> float:
        """Seconds of reading time."""
        return elements * profile.read_post_s

    def count(
        self, data: Sequence[str], profile: Profile, draws: KeyedRandom, index: int
    ) -> Counter[str]:
        """The agent's counts for a chunk; posts without a telling word are skipped."""
        topics = [group for group in map(topic, data) if group is not None]
        counts = Counter(topics)
        usual = max(GROUPS, key=lambda group: counts[group])
        wrong = profile.confusion_for(len(data))
        return miscount(topics, wrong, draws, index, lambda chance: usual)
