"""Values from outside as plain JSON."""

from __future__ import annotations

import json.encoder
from collections.abc import Callable
from typing import Any

from dig.errors import PayloadError

MOST_DEPTH = 64
MOST_DIGITS = 4300
"""Python writes and reads no whole number with more digits."""

PER_CHARACTER = 12
"""The most bytes of JSON for a character: half of what there are have two escapes of six."""

_PART = 4
"""As many characters stand for a part of a value: its brackets, a number that is not long."""

_LONG_BITS = 36

_BIG = 10**MOST_DIGITS


def plain(value: Any, place: str = "payload") -> Any:
    """A copy of a value in plain JSON types, tuples as lists.

    The copy is what an event carries, so a sender that changes its own object later changes
    nothing that was journalled or delivered.

    Args:
        value: The value.
        place: The name of the value in errors.

    Raises:
        PayloadError: The value holds something that is not JSON; the message names the place.
    """
    return copy_value(value, place)[0]


def copy_value(value: Any, place: str) -> tuple[Any, list[str], int]:
    """Copy a value like `plain`, with all texts and a bound of the size, in one walk.

    Args:
        value: The value.
        place: The name of the value in errors.

    Returns:
        The copy, all texts and keys in it, and a number of bytes that it does not exceed as JSON.

    Raises:
        PayloadError: The value holds something that is not JSON; the message names the place.
    """
    texts: list[str] = []
    parts = [_PART]
    try:
        copy = _copy(value, 0, texts, parts)
    except PayloadError as wrong:
        raise PayloadError(f"{place}{wrong}") from None
    return copy, texts, PER_CHARACTER * (sum(parts) + sum(map(len, texts)))


def _copy(value: Any, depth: int, texts: list[str], parts: list[int]) -> Any:
    """Copy a value; `texts` and `parts` collect the measures of size.

    An error says where from here; each level on its way out puts its own step before that.
    """
    # The usual types first: every payload passes here. A subclass may lie, so `type` decides.
    kind = type(value)
    if kind is str:
        texts.append(value)
        return value
    if kind is int:
        if value.bit_length() > _LONG_BITS:
            if not -_BIG < value < _BIG:
                raise PayloadError(f" is a number with more than {MOST_DIGITS} digits")
            parts.append(value.bit_length() // _LONG_BITS)
        return value
    if kind is dict or kind is list or kind is tuple:
        if depth == MOST_DEPTH:
            raise PayloadError(f" is nested more than {MOST_DEPTH} levels deep")
        parts.append(_PART * len(value))
        copy = _copy_object if kind is dict else _copy_list
        return copy(value, depth + 1, texts, parts)
    if value is None or kind is bool:
        return value
    if kind is float:
        if value - value != 0:
            raise PayloadError(f" is {value}, which JSON has no number for")
        return value
    raise PayloadError(f" is of type {kind.__name__}, which is not plain JSON")


def _copy_list(items: Any, depth: int, texts: list[str], parts: list[int]) -> list[Any]:
    if (
        len(items) > 8  # raw data: long and flat
        and set(map(type, items)) == {int}
        and max(max(items), -min(items)).bit_length() <= _LONG_BITS
    ):
        return list(items)
    copy: list[Any] = []
    try:
        for item in items:
            copy.append(_copy(item, depth, texts, parts))
    except PayloadError as wrong:
        raise PayloadError(f"[{len(copy)}]{wrong}") from None
    return copy


def _copy_object(
    members: dict[Any, Any], depth: int, texts: list[str], parts: list[int]
) -> dict[str, Any]:
    copy: dict[str, Any] = {}
    texts += members
    for key, value in members.items():
        if type(key) is not str:
            raise PayloadError(f" has the key {key!r}; keys must be strings")
        try:
            copy[key] = _copy(value, depth, texts, parts)
        except PayloadError as wrong:
            raise PayloadError(f"[{key!r}]{wrong}") from None
    return copy


def encoder(*, sort_keys: bool = False, readable: bool = False) -> Callable[[Any], str]:
    """Make a writer of plain JSON as text.

    It keeps the part of `json` that does the work, which an encoder makes anew for each value.

    Args:
        sort_keys: Whether the members of objects are put in order; by default they stay as are.
        readable: Whether the text is for people, with blanks and all letters as they are; by
            default it is ASCII without blanks.
    """
    item, key = (", ", ": ") if readable else (",", ":")
    plainly = json.JSONEncoder(
        allow_nan=False, check_circular=False, sort_keys=sort_keys, separators=(item, key),
        ensure_ascii=not readable,
    )  # fmt: skip
    make: Any = getattr(json.encoder, "c_make_encoder", None)  # no part of its interface
    text = json.encoder.encode_basestring if readable else json.encoder.encode_basestring_ascii
    if make is None:
        return plainly.encode
    part = make(None, plainly.default, text, None, key, item, sort_keys, False, False)

    def encode(value: Any) -> str:
        return text(value) if type(value) is str else "".join(part(value, 0))

    return encode


dumps = encoder()
"""JSON as it stands in a trace."""
