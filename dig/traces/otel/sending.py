"""A run that is sent to a receiver while it goes on, as the command does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .content import Content
from .follow import Follower
from .otlp import Otlp
from .stored import origin_of

Exporting = Callable[[Path], Follower]
"""Makes what follows the run with this directory."""


@contextmanager
def sending(
    endpoint: str | None,
    say: Callable[[str], None],
    *,
    content: Content | None = None,
    service_per_agent: bool = False,
    may_wait: bool = False,
) -> Iterator[Exporting]:
    """Send what runs in a block to a receiver.

    Args:
        endpoint: Where to; ``None``: as the environment says.
        say: Is told at the end what became of it.
        content: What text leaves.
        service_per_agent: Whether each agent is a service of its own.
        may_wait: Whether a run may wait for its spans to be made: in virtual time it may.

    Raises:
        SettingsError: The endpoint makes no sense.
    """
    otlp = Otlp(endpoint, service_per_agent=service_per_agent)
    followers: list[Follower] = []

    def follow(directory: Path) -> Follower:
        origin = origin_of(directory)
        follower = Follower(otlp.writer, origin, content=content, may_wait=may_wait)
        followers.append(follower)
        return follower

    try:
        yield follow
    finally:
        for follower in followers:
            follower.close()
        report = otlp.close()
        if followers:
            say(f"OTLP: {report}")
