"""`digmon runs`, `show` and `diff`: what there is, what it was, and how it differs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from dig._util.text import safe_text
from dig.errors import SettingsError

from .app import app
from .options import AsJson, Trace


@app.command()
def runs(
    folder: Annotated[Path, typer.Argument(help="A directory of runs.")] = Path("runs"),
    task: Annotated[str | None, typer.Option(help="Only runs of this task.")] = None,
    method: Annotated[str | None, typer.Option(help="Only runs with this method.")] = None,
    outcome: Annotated[
        str | None,
        typer.Option(help="Only runs that ended so, or `in progress`, `cut off` or `broken`."),
    ] = None,
    pattern: Annotated[
        list[str] | None, typer.Option(help="Only runs in which this was raised; repeatable.")
    ] = None,
    agents: Annotated[int | None, typer.Option(help="Only runs of so many agents.")] = None,
    sort: Annotated[
        str,
        typer.Option(
            help="By date, name, task, method, agents, outcome, findings, score, tokens or time."
        ),
    ] = "date",
    reverse: Annotated[bool, typer.Option("--reverse", help="Sort the other way round.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the runs of a directory.

    Task, method, agents, outcome, findings, score, time, tokens: what all have alike stands below.
    With --json one object a line. An index beside the runs (.index.sqlite) makes it quick; it
    may be deleted at any time.
    """
    from rich.console import Console

    from dig.show.runs.index import overview
    from dig.show.runs.listing import SORTS, RunFilter, ordered, print_list

    if sort not in SORTS:
        raise SettingsError(f"runs cannot be sorted by {sort!r}; try one of: {', '.join(SORTS)}")
    chosen = RunFilter(task, method, outcome, tuple(pattern or ()), agents)
    everything = overview(folder)
    found = ordered(filter(chosen.has, everything), sort, reverse=reverse)
    if as_json:
        for one in found:
            print(json.dumps(one.to_json()))
    elif found:
        print_list(Console(), found)
    else:
        what = "no runs" if not everything else f"none of {len(everything)} runs is such a one"
        print(f"{safe_text(folder)}: {what}")


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
    if as_json:
        print(json.dumps(found))
    else:
        for line in tell(found):
            print(line)


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

    Where it parts is told, and what differs in counts, findings and cost. Behaviour is what was
    done with which event, whoever did it and whatever it said. Exit status 0 if it is the same,
    1 if it is different, 2 if a run cannot be read or time is up.
    """
    from dig.show.compare.side_by_side import compare_runs

    if not limit > 0:
        raise SettingsError(f"comparing cannot take {limit:g} s; try 10")
    found = compare_runs(a, b, strict=strict, limit_s=limit, stopwatch=time.monotonic)
    if as_json:
        print(json.dumps(found.to_json()))
    else:
        for line in found.told("A", "B"):
            print(line)
    raise typer.Exit(0 if found.behaviour.is_same else 1)
