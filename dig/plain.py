"""Values from outside as plain JSON, and as text that is safe on a terminal.

The text is ASCII of ours around safe text from outside: an id or a name can be anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import PayloadError

if TYPE_CHECKING:
    from pydantic import ValidationError

MOST_DEPTH = 64
MOST_DIGITS = 4300
"""Python writes and reads no whole number with more digits."""

MOST_LISTED = 6
MOST_IN_NAME = 40
MOST_IN_TEXT = 300

_BIG = 10**MOST_DIGITS

# What steers a terminal, turns the direction of text or is not to be seen at all. Tab and newline
# stay, and so do the two selectors that come with many an emoji.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def plain(value: Any, where: str = "payload", depth: int = 0) -> Any:
    """A copy of a value in plain JSON types, tuples as lists.

    The copy is what an event carries, so a sender that changes its own object later changes
    nothing that was journalled or delivered.

    Raises:
        PayloadError: Something in it is not JSON; the message names the place.
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


def one_line(text: object, most: int = MOST_IN_TEXT) -> str:
    """Anything as one line that is safe on a terminal; white space in it becomes one blank."""
    # Cut first: an answer may be megabytes long. A character gets at most ten times as long.
    shown = " ".join(safe_text(str(text)[: 2 * most]).split())
    return shown if len(shown) <= most else shown[: max(0, most - 3)] + "..."


def name(text: object) -> str:
    """An id or an agent's name."""
    return one_line(text, MOST_IN_NAME) or "''"


def names(values: object, most: int = MOST_LISTED) -> str:
    """Some ids or names, cut where there are many."""
    if not isinstance(values, list | tuple):
        return name(values)
    return cut([name(value) for value in values[: most + 1]], most=most, of=len(values))


def cut(parts: Sequence[str], comma: str = ", ", *, most: int = MOST_LISTED, of: int = 0) -> str:
    """The first of some parts, and how many more there are (`of` is how many in all)."""
    more = max(of, len(parts)) - most
    return comma.join(parts[:most]) + (f" and {more} more" if more > 0 else "")


def first_wrong(error: ValidationError) -> tuple[str, str]:
    """Where something does not fit a model first, and what is wrong there: as pydantic has it."""
    first = error.errors(include_url=False, include_input=False)[0]
    return ".".join(map(str, first["loc"])), first["msg"]


def counted(number: int, noun: str) -> str:
    """A number of things: `1 event`, `3 events`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
