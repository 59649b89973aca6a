"""What a framework passes around, as the plain JSON that an event carries.

Nothing of the host is called for it but the fields of dataclasses and `model_dump` of pydantic
models; whatever cannot be told is said to be so, by its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from dig.codec import dumps
from dig.entrance import MOST_BYTES, PER_CHARACTER
from dig.plain import MOST_DIGITS

MOST_DEPTH = 24
MOST_IN_REPR = 200

_BIG = 10**MOST_DIGITS


def as_payload(value: Any, depth: int = 0) -> Any:
    """Any value in plain JSON types, as near as can be; it never raises.

    Tuples and sets become lists, dataclasses and pydantic models objects, bytes their length.
    Anything else becomes `{"$unserialisable": TYPE}`, with its `repr` where that is harmless.
    """
    try:
        return _plain(value, depth)
    except Exception:  # a host's object may raise whatever it likes
        return _untold(value)


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
    if not args and not kwargs:
        return None
    call: dict[str, Any] = {}
    if args:
        call["args"] = as_payload(args)
    if kwargs:
        call["kwargs"] = as_payload(dict(kwargs))
    return call


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_BIG < value < _BIG else _untold(value)
    if kind is float:
        return value if value - value == 0 else _untold(value, repr(value))
    if isinstance(value, Enum):
        return as_payload(value.value, depth + 1)
    if depth >= MOST_DEPTH:
        return _untold(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": len(value)}
    if isinstance(value, Mapping):
        return {_key(k): as_payload(v, depth + 1) for k, v in value.items()}
    if isinstance(value, Sequence | Set):
        return [as_payload(item, depth + 1) for item in value]
    return _fields(value, depth)


def _fields(value: Any, depth: int) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_payload(getattr(value, f.name, None), depth + 1) for f in fields(value)}
    if hasattr(type(value), "model_dump"):
        return as_payload(value.model_dump(), depth + 1)
    if isinstance(value, BaseException):
        return _untold(value, repr(value))
    return _untold(value)


def _key(key: Any) -> str:
    return key if type(key) is str else repr(key)[:MOST_IN_REPR]


def _untold(value: Any, shown: str | None = None) -> dict[str, str]:
    kind = type(value)
    told = {"$unserialisable": f"{kind.__module__}.{kind.__qualname__}"}
    return told if shown is None else {**told, "repr": shown[:MOST_IN_REPR]}
