"""`digmon diff`: how the behaviour of two runs differs."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from dig.errors import SettingsError

from .app import app, print_result
from .options import AsJson, Trace


@app.command()
def diff(
    a: Trace,
    b: Trace,
    strict: Annotated[
        bool, typer.Option("--strict", help="Ask for the same order of everything.")
    ] = False,
    limit: Annotated[float, typer.Option(help="Seconds that comparing may take.")] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Compare the behaviour of two runs.

    Prints where it parts, and the differences in counts, findings and cost. Behaviour is what
    was done with each event, regardless of the agents' names and of payloads. Exit status 0 if
    it is the same, 1 if it is different, 2 if a run cannot be read or time is up.
    """
    from dig.show.compare.side_by_side import compare_runs

    if not limit > 0:
        raise SettingsError(f"--limit must be greater than 0 seconds, got {limit:g}")
    found = compare_runs(a, b, strict=strict, limit_s=limit, stopwatch=time.monotonic)
    print_result(as_json, found.to_json, lambda: found.told("A", "B"))
    raise typer.Exit(0 if found.behaviour.is_same else 1)
