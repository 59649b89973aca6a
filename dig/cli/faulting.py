"""Faults: the option `--fault` of `digmon run`, and `digmon faults`, the table of their kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app
from .options import AsJson

if TYPE_CHECKING:
    from dig.faults.inject.catalogue import Kind
    from dig.faults.inject.injector import Parameter
    from dig.show.summary_text import Row
    from dig.tasks.run.disturbance import Disturbance
    from dig.tasks.run.execute import Execution
    from dig.tasks.run.methods import Arrangement

Faults = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="'KIND target=AGENT ..'",
        help="Inject a fault, such as 'crash target=agent-3 start=10'; `digmon faults` lists all.",
    ),
]


def disturbing(faults: Sequence[str] | None) -> Callable[[Arrangement], Disturbance]:
    """What puts faults, as they were written, round the team of a run.

    Raises:
        SettingsError: One of them makes no sense.
    """
    from dig.tasks.run.disturbance import Undisturbed

    if not faults:
        return Undisturbed
    from dig.faults.inject.disturbing import Disturbing
    from dig.faults.inject.fault import Fault

    return partial(Disturbing, [Fault.parse(text) for text in faults])


def fault_rows(execution: Execution) -> list[Row]:
    """What is to be said of the faults that were injected into a run."""
    injections: list[Mapping[str, Any]] | None = execution.disturbed.get("injections")
    if injections is None:
        return []
    from dig._util.text import counted

    if not injections:
        return [("faults", "none had an occasion to act")]
    first = injections[0]
    where = f"first at record {first['t']}, {first['agent']}: {first['what']}"
    return [("faults", f"acted {counted(len(injections), 'time')}, {where}")]


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
