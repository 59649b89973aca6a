"""Small types: immutable to type checkers, and cheap to make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def frozen(cls: type[_T]) -> type[_T]:
    """Make a dataclass with slots, frozen to type checkers only.

    A dataclass that is frozen at run time costs a microsecond more to make, and several of these
    are made for every event that passes between two agents.
    """
    return dataclass(slots=True)(cls)
