"""Reads the files of sets of faults strictly, since sets may come from anywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dig._util.files import open_file, read_file
from dig._util.json_text import parse
from dig._util.text import cut, one_line
from dig.errors import RecordError, RuleError, SettingsError, file_errors
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record, Start
from dig.traces.journal.reader import read_records
from dig.traces.journal.segments import fault

T = TypeVar("T", bound=BaseModel)


def read_model(model: type[T], path: Path) -> T:
    """Read an object from a JSON file.

    Raises:
        SettingsError: The file cannot be read or does not fit the model; the message names the
            place in it.
    """
    text = read_text(path)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise SettingsError(f"{path}: {_first_errors(error)}") from None
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def read_text(path: Path) -> str:
    """The text of a file of strict JSON.

    Raises:
        SettingsError: The file cannot be read, or is not strict JSON.
    """
    try:
        with file_errors(path, "read"):
            text = read_file(path).decode("utf-8")
        parse(text, "the file")  # what is stricter than pydantic: no key twice, bounded depth
    except (UnicodeDecodeError, json.JSONDecodeError, RecordError) as error:
        raise SettingsError(f"{path} is not JSON: {one_line(error)}") from None
    return text


def read_run(path: Path) -> tuple[Record, ...]:
    """Read the records of a trace, and check the rules of the graph.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    graph, records = InteractionGraph(), tuple(read_records(path))
    for number, record in enumerate(records, 1):
        try:
            # Callers follow ids from record to record without any check of their own.
            graph.apply(record)
        except RuleError as error:
            raise fault(path, number, str(error)) from None
    return records


def step_at(records: Sequence[Record], t: int) -> int:
    """The activation of a record; between two activations, the earlier activation."""
    row = records[t]
    name = getattr(row, "activation", None) or getattr(row, "by", None)
    # Activations are numbered by their starts, as in `Answer.step`.
    starts = [record for record in records if isinstance(record, Start)]
    for number, start in enumerate(starts):
        if start.activation == name:
            return number
    return max(0, sum(start.t <= t for start in starts) - 1)


def check_sum(path: Path, expected: str) -> None:
    """Compare a file's checksum with the expected checksum.

    Raises:
        SettingsError: The file cannot be read, or has another checksum.
    """
    digest = sha256()
    with file_errors(path, "read"), open_file(path) as file:
        # In pieces: a set of anybody's may have files larger than memory.
        while piece := file.read(1 << 20):
            digest.update(piece)
    if digest.hexdigest() != expected:
        raise SettingsError(
            f"{path} is not the file that was made: its checksum is not the one of the set"
        )


def _first_errors(error: ValidationError) -> str:
    """The first errors, each with the place."""
    errors = error.errors(include_url=False, include_input=False)
    parts = [f"{_place(row['loc'])}: {_lower_first(row['msg'])}" for row in errors]
    return one_line(cut(parts, "; ", most=3))


def _place(steps: tuple[int | str, ...]) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return place.removeprefix(".") or "the file"


def _lower_first(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
