"""Newsgroups: how many of some posts are about each of 20 topics? (paper, section 6)

The posts are those of the 20 Newsgroups data, if they are at hand, and else a small set of our
own; what a task says about its data says which.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from dig._util.text import safe_text
from dig.errors import SettingsError

from .frequency import FrequencyTask
from .newsgroups_posts import GROUPS, Post, our_own, real

TASK = "newsgroups"
VARIABLE = "DIG_NEWSGROUPS"
MOST_PER_MESSAGE = 40


class Newsgroups(FrequencyTask):
    """Posts, the problem of counting their topics, the tools, and the scorer.

    >>> task = Newsgroups(size=60, seed=1)
    >>> task.data
    'a small set of our own, not the real newsgroups'
    >>> tools = task.tools()
    >>> len(tools["raw_data"]([0, 30]))
    30
    """

    name = TASK
    goal = (
        "Count how many posts are about each of 20 topics. A post is the text that somebody sent "
        "to a newsgroup; its topic is the group. You hold a part of them, [start, stop] with stop "
        "not included; tools cut a part into smaller ones and read short ones. Submit an object "
        'with the key "counts": an object from each topic to its count in all of them.'
    )
    unit = "posts"
    values = GROUPS

    def __init__(
        self, size: int, seed: int, path: str | Path | None = None,
        *, most_per_message: int = MOST_PER_MESSAGE,
    ) -> None:  # fmt: skip
        """Draw the posts; equal arguments draw equal posts, on any machine.

        Args:
            size: The number of posts; 2 at least, so that there is something to put together.
            seed: Any integer.
            path: The path of the real posts; ``None``: the small set of our own is taken.
            most_per_message: The number of posts that one message may carry, unless that is more
                than half of them.

        Raises:
            SettingsError: There are not so many posts, or they cannot be read.
        """
        if path is None:
            posts, self.data = our_own(), "a small set of our own, not the real newsgroups"
        else:
            posts, self.data = real(str(path)), f"real newsgroups from {path}"
        if not 2 <= size <= len(posts):
            raise SettingsError(
                f"{size} posts cannot be drawn from {safe_text(self.data, 200)}, which has "
                f"{len(posts)}; try 2 to {len(posts)}"
            )
        drawn: list[Post] = random.Random(f"{TASK} {seed} {size}").sample(posts, size)
        truth = [post.group for post in drawn]
        super().__init__([post.text() for post in drawn], truth, most_per_message)


def data_from_environment() -> str | None:
    """The path in `DIG_NEWSGROUPS`, if the variable is set."""
    return os.environ.get(VARIABLE) or None
