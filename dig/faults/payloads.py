"""What the payloads of a task mean, for faults that damage, join or exchange them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

Transform = Callable[[Any], Any]
"""A payload that is damaged; ``None``, if it is not one that can be damaged so."""


@dataclass(frozen=True)
class Payloads:
    """The payloads of one task.

    Attributes:
        transforms: How one can be damaged, by name.
        joined: Several solutions as one; ``None`` where they cannot be joined.
        elsewhere: A problem, about the part of the task next to its own; ``None`` where there
            is none.
    """

    transforms: Mapping[str, Transform]
    joined: Callable[[Sequence[Any], str], Any] = lambda payloads, agent: None
    elsewhere: Transform = lambda payload: None


ANY = Payloads(MappingProxyType({}))
"""Payloads of which nothing is known."""
