"""Hostile inputs: valid files and requests, changed as somebody with bad intent would.

Input number n of a seed is a function of both, so what fails can be had again by itself.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from tests.hostile import ATTACKS

MOST_BYTES = 64 * 1024
_DEEP = 3_000

ODD = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "-0", "1" * 4_301, "9" * 400,
    "-1", "0.1", "1e15", "1e16", "18446744073709551616", "true", "null", "[]", "{}", '""',
    '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"system"', '"__class__"', "[[]]",
    '{"kind":"run"}', "[" * 70 + "]" * 70, "[" * _DEEP + "]" * _DEEP, '{"a":' * _DEEP + "1",
    '{"a":1,"a":2}', '{"__proto__":{"x":1}}', '{"$ref":"file:///etc/passwd"}',
    '{"py/object":"os.system"}', '["!!python/object/apply:os.system"]', "01", "+1", "'x'", "0x1",
)  # fmt: skip
"""Values as they may stand in a text; some are JSON, some only nearly."""

_BYTES = (
    b"\x00", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\n", b"\r", b"\r\n\r\n",
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"%00", b"%2e%2e%2f", b"../", b"//",
)  # fmt: skip

_MARK = "\ue000%d\ue000"


def hostile_input(seeds: Sequence[bytes], seed: int, number: int) -> bytes:
    """A hostile input made of one of some valid ones."""
    return mutated(seeds[number % len(seeds)], random.Random(f"{seed}/{number}"), seeds)


def mutated(data: bytes, draw: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """An input changed in one to four places."""
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        change = draw.choice([_values, _values, _values, _bytes, _bytes, _lines, _spliced])
        data = change(data, draw, others)
    return data[:MOST_BYTES]


# --- what knows that it is JSON -------------------------------------------------------------


def _values(data: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """A value somewhere in the JSON of the whole, or of a line, is another one."""
    try:
        return _changed(json.loads(data), draw)
    except (ValueError, RecursionError):
        pass
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    try:
        lines[at] = _changed(json.loads(lines[at]), draw)
    except (ValueError, RecursionError):
        return _words(data, draw)
    return b"\n".join(lines)


def _changed(whole: Any, draw: random.Random) -> bytes:
    """JSON in which one value is replaced, left out, doubled, or put under another key."""
    places: list[tuple[Any, Any]] = []
    _find(whole, places)
    if not places:
        return draw.choice(ODD).encode()
    holder, key = draw.choice(places)
    text = draw.choice(ODD) if draw.random() < 0.6 else json.dumps(draw.choice(ATTACKS))
    match draw.randrange(5):
        case 0:
            del holder[key]
            return json.dumps(whole).encode()
        case 1 if isinstance(holder, dict):
            holder[draw.choice(ATTACKS)] = holder.pop(key)
            return json.dumps(whole).encode()
        case 2:  # take a value from elsewhere, so that ids meet where they must not
            other, other_key = draw.choice(places)
            text = json.dumps(other[other_key])
        case 3 if isinstance(holder, dict):  # the key twice
            text = f"{json.dumps(holder[key])},{json.dumps(key)}:{text}"
    mark = _MARK % draw.randrange(10**9)
    holder[key] = mark
    return json.dumps(whole).replace(json.dumps(mark), text).encode("utf-8", "surrogatepass")


def _find(value: Any, places: list[tuple[Any, Any]]) -> None:
    if isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            places.append((value, key))
            _find(item, places)


# --- what does not ---------------------------------------------------------------------------


def _words(data: bytes, draw: random.Random) -> bytes:
    """A word of a text is another one."""
    words = data.split(b" ")
    text = draw.choice(ATTACKS + ODD)
    words[draw.randrange(len(words))] = text.encode("utf-8", "surrogatepass")
    return b" ".join(words)


def _bytes(data: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Some bytes are flipped, inserted, left out, or repeated."""
    at = draw.randrange(len(data) + 1)
    match draw.randrange(4):
        case 0 if at < len(data):
            return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
        case 1:
            return data[:at] + data[at + draw.choice([1, 2, 8, 100]) :]
        case 2:
            size = draw.choice([1, 10, 100])
            return data[:at] + data[at : at + size] * draw.choice([2, 50]) + data[at:]
    return data[:at] + draw.choice(_BYTES) * draw.choice([1, 1, 1, 200]) + data[at:]


def _lines(data: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """A line is left out, doubled, or moved."""
    lines = data.split(b"\n")
    line = lines.pop(draw.randrange(len(lines)))
    for _ in range(draw.randrange(3)):
        lines.insert(draw.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def _spliced(data: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """The beginning of one, and the end of another."""
    other = draw.choice(others) if others else data
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]
