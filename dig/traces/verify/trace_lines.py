"""The lines of a trace, over all files: whole, undamaged, JSON."""

from __future__ import annotations

import gzip
import json
import os
import stat
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from math import isinf
from pathlib import Path
from typing import Any, NoReturn

from .violations import Broken, VerificationReport

MOST_BYTES = 17 * 1024 * 1024
MOST_LEVELS = 68
# A first line without any of them is no damaged record, but something else altogether.
_SIGNS = (b'"kind"', b'"ts"', b'"chain"', b'"journal"')
_SEAL = len(b',"chain":"') + 32 + len(b'"}\n')


def rows(path: Path, report: VerificationReport) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the JSON object of each line; enters the files into the report."""
    number, last = 0, b""
    files, missing = _files(path)
    report.files = dict.fromkeys(file.name for file in files)
    for file in files:
        begin = report.files[file.name] = number + 1
        for text in _texts(file):
            number += 1
            if number == 1:
                if not any(sign in text for sign in _SIGNS):
                    raise ValueError("it is no trace: its first line is no record")
                row = _row(text, number, strict=True)
                report.is_journal = "chain" in row or "journal" in row
                first, _, part = path.name.rpartition(".")
                if row.get("kind") != "run" and first and len(part) >= 6 and part.isdecimal():
                    raise ValueError(f"it is only a part of a trace, which begins in {first}")
            if report.is_journal:
                # A torn tail is no damage: a crash, or a writer at work, leaves it.
                is_cut = not text.endswith(b"\n") and len(text) <= MOST_BYTES
                if is_cut and file == files[-1] and not missing:
                    report.torn_bytes = len(text)
                    report.add(number, f"a torn last record of {len(text)} bytes")
                    return
                last = _next_seal(last, text, number, begins=number == begin > 1)
            if number > 1:
                row = _row(text, number, strict=not report.is_journal)
            if "chain" in row and not report.is_journal:
                raise Broken("the first line is no journal's, but later lines are", 1)
            yield number, row
    if missing:
        raise Broken(missing)
    if number == 0:
        raise ValueError("it is empty")


def _files(path: Path) -> tuple[list[Path], str | None]:
    """The files of a trace, in order, up to the first missing file; and the missing file.

    After NAME come NAME.000002, NAME.000003, and so on.
    """
    prefix = f"{path.name}."
    names = {name.removesuffix(".gz") for name in os.listdir(path.parent)}
    ends = [name[len(prefix) :] for name in names if name.startswith(prefix)]
    numbers = [int(end) for end in ends if end.isascii() and end.isdecimal()]
    later = sorted(n for n in numbers if n > 1 and f"{n:06}" in ends)
    files = [path]
    if not (path.exists() or _packed(path).exists()):
        return files, None  # the error comes when it is opened
    for number in later:
        name = f"{path.name}.{number:06}"
        if number != len(files) + 1:
            return files, f"{path.name}.{len(files) + 1:06} is missing; {name} goes on after it"
        if not (path.with_name(name).is_file() or _packed(path.with_name(name)).is_file()):
            return files, f"{name} is no file that can be read"
        files.append(path.with_name(name))
    return files, None


def _packed(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")


def _texts(path: Path) -> Iterator[bytes]:
    odd = getattr(os, "O_NONBLOCK", 0)
    is_packed = not path.exists() and _packed(path).exists()
    path = _packed(path) if is_packed else path
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | odd)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no file")  # a pipe would be waited for
        lines = gzip.GzipFile(fileobj=file) if is_packed else file
        try:
            while text := lines.readline(MOST_BYTES + 1):
                yield text
        except (EOFError, zlib.error) as error:
            raise ValueError(f"it is no whole gzip file: {error}") from None


def _next_seal(last: bytes, text: bytes, number: int, *, begins: bool) -> bytes:
    body, end = text[:-_SEAL], text[-_SEAL:]
    seal = blake2b(last + body, digest_size=16).digest()
    if end != b',"chain":"' + seal.hex().encode() + b'"}\n':
        or_lost = ", or lines before it, in another file, are lost" if begins else ""
        raise Broken(f"the line is damaged{or_lost}: its checksum does not fit", number)
    return seal


def _row(text: bytes, number: int, strict: bool) -> dict[str, Any]:
    """The JSON object of a line; `strict`: without a checksum, double keys are refused."""
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
    return levels > 0 and all(_is_flat(part, levels - 1) for part in value)


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
