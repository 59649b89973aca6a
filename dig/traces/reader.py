"""Reading trace files: strict, line by line, with the line in every error."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isinf
from pathlib import Path
from typing import Any, NoReturn

from dig.codec import decode
from dig.errors import RecordError, RuleError, TraceError
from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.records import Limits, Record, Run
from dig.watch import Watch

MOST_BYTES = 17 * 1024 * 1024
"""The longest line that is read: an event of 16 MiB and what stands around it."""

TRACE = "trace.dig.jsonl"


def trace_path(path: Path) -> Path:
    """The trace file that is meant: a run directory stands for the trace in it."""
    return path / TRACE if path.is_dir() else path


def read_records(path: Path) -> Iterator[Record]:
    """Read the records of a trace file (or run directory), one a line.

    Raises:
        TraceError: The file cannot be read, or a line is no record; the line is named.
    """
    path = trace_path(path)
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MOST_BYTES + 1):
                number += 1
                try:
                    yield parse(line)
                except RecordError as error:
                    raise TraceError(path, number, str(error)) from None
    except OSError as error:
        raise TraceError(path, None, f"cannot be read: {error.strerror or error}") from None
    if number == 0:
        raise TraceError(path, None, "is empty; a trace begins with a record of kind `run`")


def parse(line: bytes) -> Record:
    """One line of a trace file as a record.

    Raises:
        RecordError: It is none; the message says why.
    """
    if len(line) > MOST_BYTES:
        raise RecordError(f"the line is longer than {MOST_BYTES} bytes")
    try:
        return decode(_LOADS(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise RecordError(f"the line is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise RecordError(f"the line is not JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise RecordError("the line is nested too deeply") from None
    except ValueError as error:  # a number with more digits than Python turns into an int
        raise RecordError(f"the line holds a number that cannot be read: {error}") from None


def read_graph(path: Path) -> InteractionGraph:
    """The graph of a trace.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    watch = Watch(())
    for _ in check_trace(path, watch):
        pass
    return watch.graph


def check_trace(
    path: Path, watch: Watch, limits: Callable[[Limits], Limits] = lambda limits: limits
) -> Iterator[Finding]:
    """What detectors find in a stored trace, in order, each as soon as the graph has it.

    Args:
        path: The trace file or run directory.
        watch: A fresh watch with the detectors.
        limits: Changes the thresholds that the trace was made with.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    for number, record in enumerate(read_records(path), 1):
        if isinstance(record, Run):
            record = replace(record, limits=limits(record.limits))
        try:
            yield from watch.feed(record)
        except RuleError as error:
            raise TraceError(trace_path(path), number, str(error)) from None


def _no_constant(name: str) -> NoReturn:
    raise RecordError(f"the line holds {name}, which is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise RecordError(f"the line holds the number {text[:20]}, which is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise RecordError(f"the key {twice[:60]!r} stands twice in one object")
    return row


_LOADS = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_constant=_no_constant
).decode
