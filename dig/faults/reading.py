"""JSON files of faults, which anybody may have made: read strictly, into models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dig.errors import RecordError, SettingsError
from dig.plain import cut, one_line
from dig.traces.files import read_file
from dig.traces.json_text import parse

T = TypeVar("T", bound=BaseModel)


def read_model(model: type[T], path: Path) -> T:
    """What a file of JSON describes.

    Raises:
        SettingsError: It cannot be read, or describes none; the message names the place in it.
    """
    text = read_text(path)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise SettingsError(f"{path}: {_said(error)}") from None
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def read_text(path: Path) -> str:
    """The text of a file of strict JSON.

    Raises:
        SettingsError: It cannot be read, or is no such JSON.
    """
    try:
        text = read_file(path).decode("utf-8")
        parse(text, "the file")  # what is stricter than pydantic: no key twice, bounded depth
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecordError) as error:
        raise SettingsError(f"{path} is not JSON: {one_line(error)}") from None
    return text


def _said(error: ValidationError) -> str:
    """The first things that are wrong, each with its place."""
    found = error.errors(include_url=False, include_input=False)
    parts = [f"{_place(one['loc'])}: {_lowered(one['msg'])}" for one in found]
    return one_line(cut(parts, "; ", most=3))


def _place(steps: tuple[int | str, ...]) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return place.removeprefix(".") or "the file"


def _lowered(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
