"""Files of other programs, as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dig._util.files import open_file
from dig._util.json_text import parse
from dig.errors import RecordError, TraceError, trace_errors

MOST_BYTES = 256 * 1024 * 1024
"""The largest file that is held in memory as a whole."""

HEAD_BYTES = 64 * 1024
"""The part of a file by which its format is recognized."""


def head_of(path: Path) -> str:
    """The beginning of a file of another program, without blanks before it.

    Raises:
        TraceError: The file cannot be read.
    """
    with trace_errors(path), open_file(path) as file:
        return file.read(HEAD_BYTES).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")


def read_text(path: Path) -> str:
    """The text of a file of another program.

    Raises:
        TraceError: The file cannot be read, is too long, or is not UTF-8.
    """
    with trace_errors(path), open_file(path) as file:
        # One byte more than allowed tells a file that is too long.
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise TraceError(path, None, f"is longer than {MOST_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(path, None, f"is not UTF-8 (byte {error.start})") from None


def read_json(path: Path) -> Any:
    """The JSON value in a file of another program.

    Raises:
        TraceError: The file cannot be read, or is no JSON.
    """
    try:
        return parse(read_text(path).lstrip("\ufeff"), "the file", finite=False)
    except json.JSONDecodeError as error:
        raise TraceError(path, error.lineno, f"is no JSON: {error.msg}") from None
    except RecordError as error:
        raise TraceError(path, None, str(error)) from None
