"""Random numbers as pure functions of their use.

Every draw is a function of (key, agent, its activation number, purpose, index). Two runs that
differ in one place so draw the same numbers everywhere else, which replay, forks and paired
comparisons build on. The generator is BLAKE2b, so numbers are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from math import cos, exp, log, pi, sqrt
from typing import TypeVar

_T = TypeVar("_T")


def repeat_key(key: int | str, repeats: Iterable[int]) -> int | str:
    """The key of the random numbers in a repeat of a part of a run.

    Args:
        key: The key of the run.
        repeats: The numbers of the repeats, each within the one before; 0 changes nothing.

    >>> repeated(7, ()), repeated(7, (2, 0, 1))
    (7, '7 again 2 again 1')
    """
    for number in repeats:
        if number:
            key = f"{key} again {number}"
    return key


class KeyedRandom:
    """The random numbers of an agent in one activation.

    >>> draws = KeyedRandom(1, "a", 3)
    >>> draws.uniform("wait") == KeyedRandom(1, "a", 3).uniform("wait") != draws.uniform("wait", 1)
    True
    """

    __slots__ = ("_prefix",)

    def __init__(self, key: int | str, agent: str, turn: int) -> None:
        """Begin for one activation.

        Args:
            key: The key of the run: its seed, or a text in which the seed stands; see `repeated`.
            agent: The name of the agent.
            turn: The number of its activation, counted from 1; 0: all of its activations.
        """
        self._prefix = f"{key}\x00{agent}\x00{turn}\x00"

    def uniform(self, purpose: str, index: int = 0) -> float:
        """A number from 0 (included) to 1 (not included)."""
        key = f"{self._prefix}{purpose}\x00{index}".encode()
        number = int.from_bytes(blake2b(key, digest_size=7).digest(), "big")
        return (number >> 3) / (1 << 53)  # more bits than a float has might round up to 1

    def chance(self, probability: float, purpose: str, index: int = 0) -> bool:
        """Draw whether an event of this probability happens.

        Args:
            probability: From 0 (never) to 1 (always).
            purpose: The use of the number.
            index: The number's index for this purpose; by default the first.
        """
        return self.uniform(purpose, index) < probability

    def choice(self, items: tuple[_T, ...] | list[_T], purpose: str, index: int = 0) -> _T:
        """Draw an item.

        Args:
            items: The items, at least one.
            purpose: The use of the number.
            index: The number's index for this purpose; by default the first.
        """
        return items[int(self.uniform(purpose, index) * len(items))]

    def normal(self, purpose: str, index: int = 0) -> float:
        """A number from the standard normal distribution."""
        # Box and Muller; `1 - uniform` is never 0, unlike `uniform`.
        radius = sqrt(-2 * log(1 - self.uniform(purpose, 2 * index)))
        return radius * cos(2 * pi * self.uniform(purpose, 2 * index + 1))

    def lognormal(self, median: float, spread: float, purpose: str, index: int = 0) -> float:
        """A positive number around a median.

        Args:
            median: The median.
            spread: The standard deviation of the number's logarithm.
            purpose: The use of the number.
            index: The number's index for this purpose; by default the first.
        """
        return median * exp(spread * self.normal(purpose, index))
