"""Whole reads of regular files, up to a limit; a missing file may be there compressed.

A pipe or a device in the place of a file would be waited for, or read without an end.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path
from typing import Any

from dig.errors import SettingsError, file_errors

from .text import safe_text

MOST_BYTES = 64 * 1024 * 1024
"""The longest file that is read at once; every such file written by dig is far shorter."""

GZIP = ".gz"
MOST_UNPACKED = 8 * 1024 * 1024 * 1024
"""The longest content of a compressed file: a few hundred bytes may stand for the whole disk."""

_NO_WAITING = getattr(os, "O_NONBLOCK", 0)


def open_file(path: Path) -> BufferedReader:
    """Open a regular file to read, or the content of a compressed file (`NAME.gz`).

    Raises:
        OSError: The file cannot be opened, or is no regular file: a pipe is not waited for.
    """
    try:
        return _open(path)
    except FileNotFoundError:
        if not is_there(path):
            raise
    with _open(stored_path(path)) as packed:
        return _unpacked(packed)


def is_there(path: Path) -> bool:
    """Whether a regular file, or a compressed file of the name, is there."""
    return stored_path(path).is_file()


def stored_path(path: Path) -> Path:
    """The path of a regular file, or of the compressed file in its place."""
    return path if path.is_file() else path.with_name(path.name + GZIP)


def checksum(path: Path) -> str:
    """The SHA-256 of the content of a file, as text.

    Raises:
        SettingsError: The file cannot be read.
    """
    with file_errors(path, "read"), open_file(path) as file:
        return file_digest(file, "sha256").hexdigest()


def _unpacked(packed: BufferedReader) -> BufferedReader:
    """The content of a compressed file, in a file without a name."""
    import gzip  # for the few who compress journals
    import tempfile
    import zlib

    raw = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  its reader closes it
    try:
        with gzip.GzipFile(fileobj=packed) as content:
            while block := content.read(1 << 20):
                raw.write(block)
                if raw.tell() > MOST_UNPACKED:
                    raise OSError(errno.EFBIG, f"it unpacks to more than {MOST_UNPACKED} bytes")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raw.close()
        raise OSError(errno.EINVAL, f"it is no whole gzip file: {error}") from None
    except OSError:
        raw.close()
        raise
    raw.seek(0)
    return BufferedReader(raw)


def _open(path: Path) -> BufferedReader:
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAITING))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no file", str(path))
    return file


def read_file(path: Path) -> bytes:
    """Read a small file, such as one beside a trace or an option's argument.

    Raises:
        OSError: The file cannot be read, is no file, or is longer than `MOST_BYTES`.
    """
    with open_file(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is longer than {MOST_BYTES} bytes", str(path))
    return data


def read_json(path: Path) -> Any:
    """Read a small file of JSON.

    Raises:
        SettingsError: The file cannot be read, or is not JSON.
    """
    with file_errors(path, "read"):
        data = read_file(path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not JSON: {safe_text(error, 200)}") from None
