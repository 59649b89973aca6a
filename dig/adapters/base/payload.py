"""Conversion of a framework's objects to the plain JSON of events.

The conversion calls no code of the host but the fields of dataclasses and `model_dump` of pydantic
models; any other object is named by its type. Nor does a large value make the team wait: of more
than `MOST_PARTS` parts only the beginning and the end of lists are converted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from itertools import islice
from json import loads
from math import isfinite
from typing import Any

from pydantic import BaseModel

from dig._util.json_values import MOST_DIGITS, PER_CHARACTER, dumps
from dig.monitor.sanitize import MOST_BYTES

MOST_DEPTH = 24
MOST_IN_REPR = 200

MOST_PARTS = 1_000
"""The most parts of a value to convert, in about a millisecond; a list of numbers is one part."""

MOST_NUMBERS = 10_000
"""The greatest length of a list of numbers that counts as one part."""

MOST_ITEMS = 5
"""The number of items to convert at each end of a list or table, of a value with more parts."""

MOST_STREAMED = 100_000
"""The number of bytes to keep of an agent's yielded items."""

_BIG = 10**MOST_DIGITS
_LEAST_BYTES = 2
"""The least length of a number as JSON: a digit and a separator."""

Words = Callable[[Any], Any]
"""Returns the value to convert in place of a framework's object; other values unchanged."""


def as_payload(value: Any, words: Words | None = None) -> Any:
    """Convert any value to plain JSON types, as near as can be; never raises.

    Tuples and sets become lists, dataclasses and pydantic models objects, bytes their length.
    Anything else becomes `{"$unserialisable": TYPE}`, with its `repr` where that is harmless; so
    does a value inside itself. A value larger than any event becomes `{"$too_large": BYTES}`, with
    a lower bound of its size. A value of more than `MOST_PARTS` parts becomes `{"$too_many": PARTS,
    "$told": SOME}`, where of long lists only both ends stand, around `{"$left_out": COUNT}`.

    Args:
        value: Anything, of any origin.
        words: Converts the framework's own objects, wherever they stand in the value.
    """
    if type(value) is str:
        return value
    converter = _Converter(words)
    try:
        return converter.convert(value, 0)
    except Exception:  # raised only for too many parts or bytes
        if converter.is_too_large:
            return {"$too_large": MOST_BYTES}
    try:
        return {"$too_many": MOST_PARTS, "$told": _BriefConverter(words).convert(value, 0)}
    except Exception:
        return {"$too_large": MOST_BYTES}


def as_small_payload(value: Any) -> Any:
    """Convert like `as_payload`; too large payloads become `{"$too_large": BYTES}`."""
    payload = as_payload(value)
    if type(payload) is str and len(payload) < MOST_BYTES // PER_CHARACTER:
        return payload
    size = len(dumps(payload))
    return payload if size <= MOST_BYTES else {"$too_large": size}


def as_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Convert the arguments of a call: a single argument itself, else an object with both kinds."""
    if len(args) == 1 and not kwargs:
        return as_payload(args[0])
    call = {"args": args, "kwargs": dict(kwargs)}
    return {kind: as_payload(values) for kind, values in call.items() if values} or None


class Pieces:
    """The yielded pieces of an agent as a list, cut if the list is too large."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        self._count = self._size = 0
        self._digest = blake2b(digest_size=16)

    def add(self, piece: Any) -> None:
        """Add a piece, as plain JSON."""
        text = dumps(piece).encode()
        self._count += 1
        self._size += len(text)
        self._digest.update(text)
        if self._size <= MOST_STREAMED:
            self._pieces.append(piece)

    def payload(self) -> Any:
        """Return all pieces; of too many, the first pieces, with the number and a digest of all."""
        if self._count == len(self._pieces):
            return self._pieces
        cut = {"$cut": self._digest.hexdigest(), "$pieces": self._count}
        return {**cut, "$first": self._pieces}


def unjson(text: str) -> Any:
    """Parse the arguments of a tool; returns a text without JSON itself."""
    try:
        return loads(text)
    except ValueError:
        return text


def is_whole(payload: Any) -> bool:
    """Whether a payload is present and complete: only such payloads can be compared."""
    if isinstance(payload, dict):
        return not any(key.startswith("$") for key in payload)
    return payload is not None


class _Converter:
    """Converts a single value; raises if the value has too many parts or bytes."""

    def __init__(self, words: Words | None) -> None:
        self._words = words
        self._bytes, self._parts = MOST_BYTES, MOST_PARTS
        self._inside: set[int] = set()  # by id: the values around the current part
        self.is_too_large = self._has_too_many = False

    def convert(self, value: Any, depth: int) -> Any:
        # Types are compared exactly, and the common ones first: this runs for each part.
        self._parts -= 1
        if self._parts < 0:
            return self._cut(value)
        kind = type(value)
        if kind is str:
            self._bytes -= len(value)  # as `_spend` does, without a call
            if self._bytes < 0:
                self._spend(0)
            return value
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -_BIG < value < _BIG else _unserialisable(value)
        if kind is float:
            return value if value - value == 0 else _unserialisable(value, repr(value))
        if depth >= MOST_DEPTH or id(value) in self._inside:
            return _unserialisable(value)
        self._inside.add(id(value))
        try:
            return self._convert_parts(value, kind, depth)
        except Exception:  # a host's object may raise whatever it likes
            if self.is_too_large or self._has_too_many:
                raise
            return _unserialisable(value)
        finally:
            self._inside.remove(id(value))

    def _cut(self, value: Any) -> Any:
        """Handle a part beyond `MOST_PARTS`."""
        self._has_too_many = True
        raise OverflowError

    def _spend(self, size: int) -> None:
        self._bytes -= size
        if self._bytes < 0:
            self.is_too_large = True
            raise OverflowError

    def _table(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        if len(value) > self._parts:  # known without walking the items
            self._cut(value)
        convert, table = self.convert, {}
        for key, part in value.items():
            if type(key) is str and len(key) <= self._bytes:
                self._bytes -= len(key)
            else:
                key = self._key(key)
            table[key] = convert(part, depth + 1)
        return table

    def _list(self, value: Collection[Any], depth: int) -> list[Any]:
        if len(value) > self._parts:
            self._cut(value)
        return [self.convert(item, depth + 1) for item in value]

    def _convert_parts(self, value: Any, kind: type, depth: int) -> Any:
        words = value if self._words is None else self._words(value)
        if words is not value:
            return self.convert(words, depth + 1)
        if kind is dict:
            return self._table(value, depth)
        if kind is list:
            if len(value) <= MOST_NUMBERS and _is_raw(value):
                self._spend(_LEAST_BYTES * len(value))
                return value.copy()
            return self._list(value, depth)
        if isinstance(value, Enum):
            return self.convert(value.value, depth + 1)
        if isinstance(value, str):
            return self.convert(str.__str__(value), depth)
        if isinstance(value, bytes | bytearray | memoryview):
            return {"$bytes": len(value)}
        if isinstance(value, Mapping):
            return self._table(value, depth)
        if isinstance(value, (Sequence, Set)):
            return self._list(value, depth)
        if is_dataclass(value) and not isinstance(value, type):
            parts = fields(value)
            return {f.name: self.convert(getattr(value, f.name, None), depth + 1) for f in parts}
        if hasattr(kind, "model_dump"):
            # pydantic's warnings quote values, which may be secret
            quiet = {"warnings": False} if kind.model_dump is BaseModel.model_dump else {}
            return self.convert(value.model_dump(**quiet), depth + 1)
        return _unserialisable(value, repr(value) if isinstance(value, BaseException) else None)

    def _key(self, key: Any) -> str:
        name = str.__str__(key) if isinstance(key, str) else repr(key)[:MOST_IN_REPR]
        self._spend(len(name))
        return name


class _BriefConverter(_Converter):
    """Converts both ends of all long lists and tables in a value with too many parts."""

    def _cut(self, value: Any) -> Any:
        return {"$left_out": 1}

    def _table(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        first = islice(value.items(), 2 * MOST_ITEMS)
        table = {self._key(key): self.convert(part, depth + 1) for key, part in first}
        omitted = len(value) - 2 * MOST_ITEMS
        return {**table, "$left_out": omitted} if omitted > 0 else table

    def _list(self, value: Collection[Any], depth: int) -> list[Any]:
        omitted = len(value) - 2 * MOST_ITEMS
        count = MOST_ITEMS if omitted > 0 else 2 * MOST_ITEMS
        first = [self.convert(item, depth + 1) for item in islice(value, count)]
        if omitted <= 0:
            return first
        last = value[-MOST_ITEMS:] if isinstance(value, Sequence) else ()
        return [*first, {"$left_out": omitted}, *(self.convert(part, depth + 1) for part in last)]


def _is_raw(values: list[Any]) -> bool:
    """Whether a list has only numbers, without NaN, infinity or too many digits."""
    if not values or type(values[0]) not in (int, float):
        return False
    kinds = set(map(type, values))
    if kinds == {int}:
        return bool(min(values) > -_BIG and max(values) < _BIG)
    return kinds == {float} and all(map(isfinite, values))


def _unserialisable(value: Any, text: str | None = None) -> dict[str, str]:
    kind = type(value)
    try:
        name = f"{kind.__module__}.{kind.__qualname__}"[:MOST_IN_REPR]
    except Exception:  # a class may be of a kind of its own
        name = "?"
    return {"$unserialisable": name, **({} if text is None else {"repr": text[:MOST_IN_REPR]})}
