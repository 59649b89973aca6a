"""`digmon faults`: the kinds of faults that can be injected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .app import app, print_result
from .options import AsJson

if TYPE_CHECKING:
    from dig.faults.inject.catalogue import Kind


@app.command()
def faults(as_json: AsJson = False) -> None:
    """Show the kinds of faults that `digmon run --fault` can inject, and what each can be told."""
    from dig.faults.inject.catalogue import KINDS

    kinds = KINDS.values()
    print_result(as_json, lambda: [kind.to_json() for kind in kinds], lambda: map(_about, kinds))


def _about(kind: Kind) -> str:
    raises = ", ".join(kind.raises) or "no pattern for sure"
    may = f"; it may raise {', '.join(kind.may_raise)}" if kind.may_raise else ""
    lines = [kind.meaning, f"Raises {raises}{may}."]
    for name, parameter in kind.parameters.items():
        choices = f" ({', '.join(parameter.choices)})" if parameter.choices else ""
        default = "no limit" if parameter.default is None else parameter.default
        lines.append(f"{name} = {default}  {parameter.meaning}{choices}")
    return "\n    ".join([f"{kind.name} ({kind.family})", *lines]) + "\n"
