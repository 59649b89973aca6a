"""Payloads that lie beside a trace, in files that are called after their content."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from dig.errors import RecordError

from .chain import BLOBS
from .json_text import MOST_BYTES, parse

_BLOB = re.compile("[0-9a-f]{64}")
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file


def read_blobs(folder: Path, names: object) -> dict[str, Any]:
    """The payloads that lie beside a trace, by their keys in a record.

    Raises:
        RecordError: One is missing or damaged.
    """
    if type(names) is not dict:
        raise RecordError("`blobs` must be an object of checksums")
    return {key: _read_blob(folder, name) for key, name in names.items()}


def _read_blob(folder: Path, name: object) -> Any:
    if type(name) is not str or not _BLOB.fullmatch(name):
        raise RecordError("`blobs` names what is no checksum")
    try:
        file = os.open(folder / BLOBS / f"{name}.json", os.O_RDONLY | _NO_LINKS | _NO_WAITING)
        with open(file, "rb") as blob:
            data = blob.read(MOST_BYTES + 1)
    except OSError as error:
        raise RecordError(f"the payload {name} cannot be read: {error.strerror}") from None
    if sha256(data).hexdigest() != name:
        raise RecordError(f"the payload {name} is damaged")
    try:
        return parse(data.decode("utf-8"), "it")
    except (ValueError, RecordError) as error:
        raise RecordError(f"the payload {name} is no JSON that can be read: {error}") from None
