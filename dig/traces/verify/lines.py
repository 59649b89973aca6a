"""The lines of a trace file: whole, undamaged, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from math import isinf
from pathlib import Path
from typing import Any, NoReturn

from .report import Broken, Report

MOST_BYTES = 17 * 1024 * 1024
MOST_LEVELS = 68
# A first line without any of them is no damaged record, but something else altogether.
_SIGNS = (b'"kind"', b'"ts"', b'"chain"', b'"journal"')
_SEAL = len(b',"chain":"') + 32 + len(b'"}\n')


def rows(path: Path, report: Report) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the JSON object of each line; tells the report what the file is."""
    number, last = 0, b""
    with path.open("rb") as file:
        while text := file.readline(MOST_BYTES + 1):
            number += 1
            if number == 1:
                if not any(sign in text for sign in _SIGNS):
                    raise ValueError("it is no trace: its first line is no record")
                row = _row(text, number, strict=True)
                report.is_journal = "chain" in row or "journal" in row
            if report.is_journal:
                if not text.endswith(b"\n") and len(text) <= MOST_BYTES:
                    report.torn_bytes = len(text)
                    report.add(number, f"a torn last record of {len(text)} bytes")
                    return
                last = _next_seal(last, text, number)
            if number > 1:
                row = _row(text, number, strict=not report.is_journal)
            if "chain" in row and not report.is_journal:
                raise Broken("the first line is no journal's, but later lines are", 1)
            yield number, row
    if number == 0:
        raise ValueError("it is empty")


def _next_seal(last: bytes, text: bytes, number: int) -> bytes:
    body, end = text[:-_SEAL], text[-_SEAL:]
    seal = blake2b(last + body, digest_size=16).digest()
    if end != b',"chain":"' + seal.hex().encode() + b'"}\n':
        raise Broken("the line is damaged: its checksum does not fit", number)
    return seal


def _row(text: bytes, number: int, strict: bool) -> dict[str, Any]:
    """The JSON object of a line; `strict`: nobody vouches for it that no key is there twice."""
    try:
        if len(text) > MOST_BYTES:
            raise ValueError("it is too long")
        row = (_STRICT if strict else _PLAIN)(text.decode("utf-8"))
        if text.count(b"[") + text.count(b"{") > MOST_LEVELS and not _is_flat(row, MOST_LEVELS):
            raise ValueError("it is nested too deeply")
    except (ValueError, RecursionError) as error:
        raise Broken(f"the line is not JSON: {error}", number) from None
    if type(row) is not dict:
        raise Broken("the line is no JSON object", number)
    return row


def _is_flat(value: Any, levels: int) -> bool:
    if type(value) is dict:
        value = list(value.values())
    if type(value) is not list:
        return True
    return levels > 0 and all(_is_flat(one, levels - 1) for one in value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(row := dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return row


def _finite(text: str) -> float:
    if isinf(value := float(text)):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


_PLAIN = json.JSONDecoder(parse_constant=_no_constant).decode
_STRICT = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_twice
).decode
