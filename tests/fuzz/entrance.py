"""What an entrance that is fuzzed is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from dig._util.text import one_line
from dig.errors import DigError


class Entrance(ABC):
    """Something that takes bytes from outside.

    Attributes:
        seeds: Valid inputs.
    """

    seeds: Sequence[bytes]

    @abstractmethod
    def take(self, data: bytes) -> bool:
        """Hand an input in; what is documented is caught, all else comes out.

        Returns:
            Whether the input was accepted.
        """

    def close(self) -> None:  # noqa: B027  # most have nothing to close
        """Let go of everything."""


def assert_short(error: DigError) -> None:
    """What is said of a file is one line that does no harm, whatever is in the file."""
    text = str(error)
    assert len(text) < 2_000, len(text)
    assert "\n" not in one_line(text)
