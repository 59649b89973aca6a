"""Sampling: some requests, chosen by chance, leave no trace, and no detector looks at them.

They run in a session of their own, with the same gates and budget, so that the journal of the
others is that of a team which never had them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from dig.errors import SettingsError

if TYPE_CHECKING:
    from .session import Session


@dataclass(frozen=True)
class Sampling:
    """The chance of a request to be monitored in full, and the session of the others.

    Attributes:
        share: The share of the requests that are monitored in full.
        rest: The session of all other requests, without journal and detectors.
        draw: Draws a number from 0 up to 1 for each request.
    """

    share: float
    rest: Session
    draw: Callable[[], float] = field(default_factory=lambda: Random().random)  # not the user's

    def leaves_out(self) -> bool:
        """Whether the request that begins now is none of the sample."""
        return self.draw() >= self.share


def check_share(share: object) -> float:
    """Check the share of a sample.

    Raises:
        SettingsError: It is no number from 0 to 1.
    """
    if isinstance(share, bool) or not (isinstance(share, int | float) and 0 <= share <= 1):
        raise SettingsError(f"sample={share!r:.60} is no share of the requests, from 0 to 1")
    return share
