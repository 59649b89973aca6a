"""`digmon show`, `diff` and `graph`: a run explained, beside another run, or as its graph."""

import json
import time
from typing import Annotated

import typer

from dig.errors import SettingsError

from .app import app, print_result
from .options import AsJson, At, Cleaned, Salvage, Trace, recover_torn_end


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
    from dig.show.explain import facts
    from dig.show.explain.lines import explanation_lines

    explanation = facts.show(run, id)
    print_result(as_json, lambda: explanation, lambda: explanation_lines(explanation))


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
    explained = compare_runs(a, b, strict=strict, limit_s=limit, stopwatch=time.monotonic)
    print_result(as_json, explained.to_json, lambda: explained.lines("A", "B"))
    raise typer.Exit(0 if explained.behaviour.is_same else 1)


@app.command()
def graph(
    file: Trace,
    cleaned: Cleaned = False,
    at: At = None,
    salvage: Salvage = False,
    as_json: AsJson = True,
) -> None:
    """Print the Dynamic Interaction Graph of a stored trace.

    As networkx node-link data, with the edges under the key `edges`; `digmon show` has the words.
    """
    from dig.traces.interchange.exports import Export

    recover_torn_end(file, salvage)
    print(json.dumps(Export(file, at, cleaned).view().node_link()))
