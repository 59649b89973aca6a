"""Values from outside as plain JSON, and as text that is safe on a terminal."""

from __future__ import annotations

import re
from typing import Any

from .errors import PayloadError

MOST_DEPTH = 64

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def plain(value: Any, where: str = "payload", depth: int = 0) -> Any:
    """A copy of a value in plain JSON types, tuples as lists.

    The copy is what an event carries, so a sender that changes its own object later changes
    nothing that was journalled or delivered.

    Raises:
        PayloadError: Something in it is not JSON; the message names the place.
    """
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is int:
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
        if all(type(item) is int for item in value):  # raw data: long and flat
            return list(value)
        return [plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise PayloadError(f"{where} is of type {kind.__name__}, which is not plain JSON")


def _key(key: Any, where: str) -> str:
    if type(key) is not str:
        raise PayloadError(f"{where} has the key {key!r}; keys must be strings")
    return key


def safe_text(text: object, most: int | None = None) -> str:
    """Text from outside, fit for a terminal: control and direction characters made visible.

    Args:
        text: Anything; its `str`.
        most: Cut after so many characters.
    """
    shown = _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", str(text))
    if most is not None and len(shown) > most:
        shown = shown[: most - 1] + "…"
    return shown
