"""Objects that a framework passes around, as the plain JSON that an event carries.

Nothing of the host is called for it but the fields of dataclasses and `model_dump` of pydantic
models; whatever cannot be told is said to be so, by its type. Nor does a value make the team wait:
of one with more than `MOST_PARTS` parts the beginning and the end of its lists are told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from itertools import islice
from json import loads
from math import isfinite
from typing import Any, NoReturn

from pydantic import BaseModel

from dig._util.json_values import MOST_DIGITS, PER_CHARACTER
from dig.graph.codec import dumps
from dig.monitor.sanitize import MOST_BYTES

MOST_DEPTH = 24
MOST_IN_REPR = 200

MOST_PARTS = 1_000
"""The most parts of a value that are told, in about a millisecond; a list of numbers is one."""

MOST_NUMBERS = 10_000
"""The greatest length of such a list."""

MOST_ITEMS = 5
"""The number of items of each end of a list, or of a table, are told of a value with more parts."""

MOST_STREAMED = 100_000
"""The number of bytes that are told of an agent's yielded items."""

_BIG = 10**MOST_DIGITS
_LEAST_BYTES = 2
"""The least length of a number as JSON: a digit, and what parts it from the next one."""

Words = Callable[[Any], Any]
"""The value told in place of an object of a framework; any other stays as it is."""


def as_payload(value: Any, words: Words | None = None) -> Any:
    """Any value in plain JSON types, as near as can be; it never raises.

    Tuples and sets become lists, dataclasses and pydantic models objects, bytes their length.
    Anything else becomes `{"$unserialisable": TYPE}`, with its `repr` where that is harmless; so
    does a value inside itself. What is larger than any event becomes `{"$too_large": BYTES}`, with
    what it takes at least. What has more than `MOST_PARTS` parts becomes `{"$too_many": PARTS,
    "$told": SOME}`, where of long lists only both ends stand, around `{"$left_out": COUNT}`.

    Args:
        value: Anything, of any origin.
        words: The functions that tell the framework's own objects, wherever they stand in it.
    """
    if type(value) is str:
        return value
    telling = _Telling(words)
    try:
        return telling.tell(value, 0)
    except Exception:  # raised only when it is too much
        if telling.is_too_large:
            return {"$too_large": MOST_BYTES}
    try:
        return {"$too_many": MOST_PARTS, "$told": _Brief(words).tell(value, 0)}
    except Exception:
        return {"$too_large": MOST_BYTES}


def as_small_payload(value: Any) -> Any:
    """Any value as `as_payload` has it; what no event can carry becomes `{"$too_large": BYTES}`."""
    payload = as_payload(value)
    if type(payload) is str and len(payload) < MOST_BYTES // PER_CHARACTER:
        return payload
    size = len(dumps(payload))
    return payload if size <= MOST_BYTES else {"$too_large": size}


def as_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The arguments of a call: the only one itself, else an object with both kinds."""
    if len(args) == 1 and not kwargs:
        return as_payload(args[0])
    call = {"args": args, "kwargs": dict(kwargs)}
    return {kind: as_payload(given) for kind, given in call.items() if given} or None


class Pieces:
    """Yielded pieces, told as one list, for as long as it is not too much."""

    def __init__(self) -> None:
        """Begin with none."""
        self._pieces: list[Any] = []
        self._count = self._size = 0
        self._digest = blake2b(digest_size=16)

    def add(self, piece: Any) -> None:
        """A further piece, as plain JSON."""
        text = dumps(piece).encode()
        self._count += 1
        self._size += len(text)
        self._digest.update(text)
        if self._size <= MOST_STREAMED:
            self._pieces.append(piece)

    def payload(self) -> Any:
        """All pieces; else the first ones, with the number and a digest of all."""
        if self._count == len(self._pieces):
            return self._pieces
        cut = {"$cut": self._digest.hexdigest(), "$pieces": self._count}
        return {**cut, "$first": self._pieces}


def unjson(text: str) -> Any:
    """The arguments of a tool as what the JSON text says; as the text, if it is none."""
    try:
        return loads(text)
    except ValueError:
        return text


def is_whole(payload: Any) -> bool:
    """Whether a payload is there, and told whole: only then it can be equal to another one."""
    if isinstance(payload, dict):
        return not any(key.startswith("$") for key in payload)
    return payload is not None


class _Telling:
    """Tells one value, as long as an event might carry it."""

    def __init__(self, words: Words | None) -> None:
        self._words = words
        self._bytes, self._parts = MOST_BYTES, MOST_PARTS
        self._inside: set[int] = set()  # by id: the values whose parts are being told
        self.is_too_large = self._has_too_many = False

    def tell(self, value: Any, depth: int) -> Any:
        """A part of it."""
        self._parts -= 1
        if self._parts < 0:
            return self._beyond(value)
        kind = type(value)
        if kind is str:
            self._bytes -= len(value)
            if self._bytes < 0:
                self._refuse()
            return value
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -_BIG < value < _BIG else _untold(value)
        if kind is float:
            return value if value - value == 0 else _untold(value, repr(value))
        if depth >= MOST_DEPTH or id(value) in self._inside:
            return _untold(value)
        self._inside.add(id(value))
        try:
            return self._parts_of(value, kind, depth)
        except Exception:  # a host's object may raise whatever it likes
            if self.is_too_large or self._has_too_many:
                raise
            return _untold(value)
        finally:
            self._inside.remove(id(value))

    def _beyond(self, value: Any) -> Any:
        """A part after as many as are told."""
        self._has_too_many = True
        raise OverflowError

    def _spend(self, size: int) -> None:
        self._bytes -= size
        if self._bytes < 0:
            self._refuse()

    def _refuse(self) -> NoReturn:
        """More bytes than any event carries."""
        self.is_too_large = True
        raise OverflowError

    def _table(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        self._look_at(value)
        tell, told = self.tell, {}
        for key, part in value.items():
            if type(key) is str:
                self._bytes -= len(key)
                if self._bytes < 0:
                    self._refuse()
            else:
                key = self._key(key)
            told[key] = tell(part, depth + 1)
        return told

    def _list(self, value: Collection[Any], depth: int) -> list[Any]:
        self._look_at(value)
        return [self.tell(item, depth + 1) for item in value]

    def _look_at(self, value: Collection[Any]) -> None:
        """Do not walk what has too many items."""
        if len(value) > self._parts:
            self._beyond(value)

    def _parts_of(self, value: Any, kind: type, depth: int) -> Any:
        told = value if self._words is None else self._words(value)
        if told is not value:
            return self.tell(told, depth + 1)
        if kind is dict:
            return self._table(value, depth)
        if kind is list:
            if len(value) <= MOST_NUMBERS and _is_raw(value):
                self._spend(_LEAST_BYTES * len(value))
                return value.copy()
            return self._list(value, depth)
        if isinstance(value, Enum):
            return self.tell(value.value, depth + 1)
        if isinstance(value, str):
            return self.tell(str.__str__(value), depth)
        if isinstance(value, bytes | bytearray | memoryview):
            return {"$bytes": len(value)}
        if isinstance(value, Mapping):
            return self._table(value, depth)
        if isinstance(value, (Sequence, Set)):
            return self._list(value, depth)
        return self._fields(value, depth)

    def _fields(self, value: Any, depth: int) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            parts = fields(value)
            return {f.name: self.tell(getattr(value, f.name, None), depth + 1) for f in parts}
        if hasattr(type(value), "model_dump"):
            # pydantic's warnings quote values, which may be secret
            quiet = {"warnings": False} if type(value).model_dump is BaseModel.model_dump else {}
            return self.tell(value.model_dump(**quiet), depth + 1)
        if isinstance(value, BaseException):
            return _untold(value, repr(value))
        return _untold(value)

    def _key(self, key: Any) -> str:
        name = str.__str__(key) if isinstance(key, str) else repr(key)[:MOST_IN_REPR]
        self._spend(len(name))
        return name


class _Brief(_Telling):
    """Tells of a value with too many parts both ends of all that is long."""

    def _beyond(self, value: Any) -> Any:
        return {"$left_out": 1}

    def _table(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        some = islice(value.items(), 2 * MOST_ITEMS)
        told = {self._key(k): self.tell(v, depth + 1) for k, v in some}
        left = len(value) - 2 * MOST_ITEMS
        return {**told, "$left_out": left} if left > 0 else told

    def _list(self, value: Collection[Any], depth: int) -> list[Any]:
        left = len(value) - 2 * MOST_ITEMS
        told = [self.tell(item, depth + 1) for item in islice(value, MOST_ITEMS)]
        if left <= 0:
            rest = islice(value, MOST_ITEMS, 2 * MOST_ITEMS)
            return [*told, *(self.tell(item, depth + 1) for item in rest)]
        last = value[-MOST_ITEMS:] if isinstance(value, Sequence) else ()
        return [*told, {"$left_out": left}, *(self.tell(item, depth + 1) for item in last)]


def _is_raw(values: list[Any]) -> bool:
    """Whether a list is of numbers alone, all of which JSON has."""
    if not values or type(values[0]) not in (int, float):
        return False
    kinds = set(map(type, values))
    if kinds == {int}:
        return bool(min(values) > -_BIG and max(values) < _BIG)
    return kinds == {float} and all(map(isfinite, values))


def _untold(value: Any, shown: str | None = None) -> dict[str, str]:
    kind = type(value)
    try:
        name = f"{kind.__module__}.{kind.__qualname__}"[:MOST_IN_REPR]
    except Exception:  # a class may be of a kind of its own
        name = "?"
    told = {"$unserialisable": name}
    return told if shown is None else {**told, "repr": shown[:MOST_IN_REPR]}
