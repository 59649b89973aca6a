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


def load(name: str, kind: str) -> Any:
    """Import an object by a name such as `my_module:team`.

    A module in the current directory can be named, as with `python -m`.

    Args:
        name: `module:object`.
        kind: The kind of the object, for the error's message.

    Raises:
        SettingsError: There is no such thing, or its module cannot be imported.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise SettingsError(f"a {kind} is named like `my_module:{kind}`, not {name!r}")
    # As `python -m` does it; the path of a console script lacks the directory.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"there is no {kind} {name!r}: {error}") from None
    except Exception as error:  # it is the user's, and may raise anything
        raise SettingsError(f"{module!r} cannot be imported: {error!r}") from error


def call(function: Callable[..., Any], name: str, **arguments: Any) -> Any:
    """The return value of a user's function or class.

    Args:
        function: The function or class.
        name: The object's name as the user gave it.
        arguments: The values for the call, which is given those that it has parameters for.

    Raises:
        SettingsError: The call raised an error; the message says which.
    """
    try:
        return function(**_select_arguments(function, arguments))
    except SettingsError:
        raise
    except Exception as error:
        raise SettingsError(f"{name!r} raised {error!r}") from error


def _select_arguments(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return arguments
    return {name: value for name, value in arguments.items() if name in parameters}


def numbers(kind: Any, texts: Iterable[str], option: str) -> dict[str, Any]:
    """The fields of a dataclass of numbers from `NAME=VALUE`s as on a command line.

    Args:
        kind: The dataclass; each field has a default.
        texts: The texts.
        option: The name of the option, for messages.

    Raises:
        SettingsError: There is no such name, or a value is no number; the message names it.
    """
    defaults: dict[str, Any] = {field.name: field.default for field in fields(kind)}
    values = {}
    for text in texts:
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
