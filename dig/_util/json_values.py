"""Values from outside as plain JSON."""

from __future__ import annotations

from typing import Any

from dig.errors import PayloadError

MOST_DEPTH = 64
MOST_DIGITS = 4300
"""Python writes and reads no whole number with more digits."""

_BIG = 10**MOST_DIGITS


def plain(value: Any, where: str = "payload", depth: int = 0) -> Any:
    """A copy of a value in plain JSON types, tuples as lists.

    The copy is what an event carries, so a sender that changes its own object later changes
    nothing that was journalled or delivered.

    Args:
        value: The value.
        where: The name of the value in errors.
        depth: The number of levels that the value is nested in already; by default none.

    Raises:
        PayloadError: The value holds something that is not JSON; the message names the place.
    """
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value
    if kind is int:
        if not -_BIG < value < _BIG:
            raise PayloadError(f"{where} is a number with more than {MOST_DIGITS} digits")
        return value
    if kind is float:
        if value - value != 0:
            raise PayloadError(f"{where} is {value}, which JSON has no number for")
        return value
    if depth == MOST_DEPTH:
        raise PayloadError(f"{where} is nested more than {MOST_DEPTH} levels deep")
    if kind is dict:
        return {_key(k, where): plain(v, f"{where}[{k!r}]", depth + 1) for k, v in value.items()}
    if kind is list or kind is tuple:
        is_raw = set(map(type, value)) == {int}  # raw data: long and flat
        if is_raw and min(value) > -_BIG and max(value) < _BIG:
            return list(value)
        return [plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise PayloadError(f"{where} is of type {kind.__name__}, which is not plain JSON")


def _key(key: Any, where: str) -> str:
    if type(key) is not str:
        raise PayloadError(f"{where} has the key {key!r}; keys must be strings")
    return key
