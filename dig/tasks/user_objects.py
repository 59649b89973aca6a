"""Names from a user: teams, tasks and agents as `module:object`, and numbers as `NAME=VALUE`."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from importlib import import_module
from typing import Any

from dig.errors import SettingsError


def load(name: str, what: str) -> Any:
    """The object that a name such as `my_module:team` stands for.

    A module in the current directory can be named, as with `python -m`.

    Args:
        name: `module:object`.
        what: The kind of the object, for the error's message.

    Raises:
        SettingsError: There is no such thing, or its module cannot be imported.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise SettingsError(f"a {what} is named like `my_module:{what}`, not {name!r}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"there is no {what} {name!r}: {error}") from None
    except Exception as error:  # it is the user's, and may raise anything
        raise SettingsError(f"{module!r} cannot be imported: {error!r}") from error


def call(made: Callable[..., Any], name: str, **given: Any) -> Any:
    """The return value of a user's function or class.

    Args:
        made: The function or class.
        name: The object's name as the user gave it.
        given: The values for the call, which is given those that it has parameters for.

    Raises:
        SettingsError: The call raised an error; the message says which.
    """
    try:
        return made(**_taken(made, given))
    except SettingsError:
        raise
    except Exception as error:
        raise SettingsError(f"{name!r} raised {error!r}") from error


def _taken(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return given
    return {name: value for name, value in given.items() if name in parameters}


def numbers(kind: Any, given: Iterable[str], option: str) -> dict[str, Any]:
    """The fields of a dataclass of numbers from `NAME=VALUE`s as on a command line.

    Args:
        kind: The dataclass; each field has a default.
        given: The texts.
        option: The name of the option, for messages.

    Raises:
        SettingsError: There is no such name, or a value is no number; the message names it.
    """
    defaults: dict[str, Any] = {one.name: one.default for one in fields(kind)}
    values = {}
    for text in given:
        name, _, value = text.partition("=")
        if name not in defaults:
            first = f"{next(iter(defaults))}={next(iter(defaults.values()))}"
            raise SettingsError(
                f"{option} {text}: known are {', '.join(defaults)}; write {first} for example"
            )
        try:
            values[name] = type(defaults[name])(value)
        except ValueError:
            raise SettingsError(f"{option} {text}: {value!r} is no number") from None
    return values
