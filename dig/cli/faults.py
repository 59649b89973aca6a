"""`digmon faults`: the kinds of faults that can be injected."""

from __future__ import annotations

import json
from textwrap import indent
from typing import TYPE_CHECKING

from .app import app
from .options import AsJson

if TYPE_CHECKING:
    from dig.faults.inject.catalogue import Kind
    from dig.faults.inject.injector import Parameter


@app.command()
def faults(as_json: AsJson = False) -> None:
    """Show the kinds of faults that `digmon run --fault` can inject, and what each can be told."""
    from dig.faults.inject.catalogue import KINDS

    if as_json:
        print(json.dumps([kind.to_json() for kind in KINDS.values()]))
        return
    for kind in KINDS.values():
        print(f"{kind.name} ({kind.family})")
        print(indent("\n".join(_about(kind)), "    "), end="\n\n")


def _about(kind: Kind) -> list[str]:
    raises = ", ".join(kind.raises) or "no pattern for sure"
    may = f"; it may raise {', '.join(kind.may_raise)}" if kind.may_raise else ""
    parameters = [_parameter(name, parameter) for name, parameter in kind.parameters.items()]
    return [kind.meaning, f"Raises {raises}{may}.", *parameters]


def _parameter(name: str, parameter: Parameter) -> str:
    choices = f" ({', '.join(parameter.choices)})" if parameter.choices else ""
    default = "no limit" if parameter.default is None else parameter.default
    return f"{name} = {default}  {parameter.meaning}{choices}"
