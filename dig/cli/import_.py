"""`digmon import`: a trace of what another program recorded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dig._util.text import safe_text

from .app import app


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What another program recorded.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The run directory to make, or a file NAME.dig.jsonl."),
    ],
    format: Annotated[
        str | None, typer.Option(help="dig-graph or log; as the file looks, if not given.")
    ] = None,
) -> None:
    """Make a trace of what another program recorded.

    That is a graph of the reference implementation (schema dig.graph.v2), or a message log. What
    the source does not say is guessed; every guess is told, and stands in the trace.
    """
    from dig.traces.interchange.imports import import_file, save

    imported = import_file(file, format)
    path = save(imported, out)
    for guess in imported.guesses:
        print(f"digmon: guess: {safe_text(guess, 400)}", file=sys.stderr)
    print(f"{safe_text(path)}: {len(imported.records)} records, read as {imported.format}")
