"""`digmon show`: a run, or one thing in it, explained."""

from __future__ import annotations

from typing import Annotated

import typer

from .app import app, print_result
from .options import AsJson, Trace


@app.command()
def show(
    run: Trace,
    id: Annotated[
        str | None,
        typer.Argument(
            help="An event, an activation, an agent, or a finding by its record number."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain a run, or one thing in it, with its paths.

    That is an event with its whole story, an activation, an agent, or a finding.
    """
    from dig.show.explain import showing
    from dig.show.explain.telling import tell

    found = showing.show(run, id)
    print_result(as_json, lambda: found, lambda: tell(found))
