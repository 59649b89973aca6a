"""JSON from outside: parsed strictly, with bounded depth."""

from __future__ import annotations

import json
from collections import Counter
from math import isinf
from typing import Any, NoReturn

from dig.errors import RecordError

from .json_values import MOST_DEPTH

MOST_BYTES = 17 * 1024 * 1024
"""The longest line that is read: an event of 16 MiB, and its other keys."""

_BLANKS = " \t\n\r"

MOST_LEVELS = MOST_DEPTH + 4
"""The deepest nesting that is read: that of the deepest payload, and of a record around it."""


def parse(text: str, name: str = "the line", *, finite: bool = True) -> Any:
    """The JSON value of a text.

    Refused, although some readers accept them: `NaN` and `Infinity`, numbers too large for
    Python, a key that stands twice in an object, and nesting deeper than `MOST_LEVELS`. Half a
    surrogate pair is kept as it is, and escaped when it is written.

    Args:
        text: The text.
        name: The name of the text in errors.
        finite: Whether to refuse `NaN` and `Infinity`, the default; else the caller does, and can
            name their place.

    Raises:
        json.JSONDecodeError: The text is no JSON.
        RecordError: The text is JSON that is refused; the message says why.
    """
    try:
        value = (_FINITE if finite else _ANY).decode(text.strip(_BLANKS))
    except json.JSONDecodeError:
        raise
    except RecordError as reason:
        raise RecordError(f"{name} holds {reason}") from None
    except RecursionError:
        raise RecordError(f"{name} is nested too deeply") from None
    except ValueError as error:  # a number with more digits than Python turns into an int
        raise RecordError(f"{name} holds a number that cannot be read: {error}") from None
    # To count is cheap, and few texts hold so many.
    if text.count("[") + text.count("{") > MOST_LEVELS and _is_deep(value):
        raise RecordError(f"{name} is nested too deeply")
    return value


def parse_row(line: bytes) -> dict[str, Any]:
    """The JSON object of a line of a trace file.

    Raises:
        RecordError: The line is no JSON object; the message says why.
    """
    if len(line) > MOST_BYTES:
        raise RecordError(f"the line is longer than {MOST_BYTES} bytes")
    try:
        row = parse(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RecordError(f"the line is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise RecordError(f"the line is not JSON: {error.msg} (column {error.colno})") from None
    if type(row) is not dict:
        raise RecordError("a record must be a JSON object")
    return row


def _is_deep(value: Any) -> bool:
    # Level by level: a recursion would end at Python's own limit.
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, dict | list)
        ]
    return bool(level)


def _no_constant(name: str) -> NoReturn:
    raise RecordError(f"{name}, which is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise RecordError(f"the number {text[:20]}, which is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        double = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise RecordError(f"an object in which the key {double[:60]!r} stands twice")
    return row


_FINITE = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_constant=_no_constant
)
_ANY = json.JSONDecoder(object_pairs_hook=_object)
