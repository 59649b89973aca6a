"""Options that belong together, as one parameter of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def grouped(command: Callable[..., T]) -> Callable[..., T]:
    """Have each parameter whose type is a dataclass stand for the options that are its fields.

    A field is annotated as a parameter of a command is, with its default beside it.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = groups.get(parameter.name)
        if group is None:
            parameters.append(_parameter(parameter.name, hints, parameter.default))
        else:
            inner = get_type_hints(group, include_extras=True)
            parameters += [_parameter(one.name, inner, one.default) for one in fields(group)]

    @wraps(command)
    def run(**given: Any) -> T:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        return command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _parameter(name: str, hints: dict[str, Any], default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name]
    )
