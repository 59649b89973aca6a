"""`digmon runs`: the runs of a directory."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dig._util.text import safe_text
from dig.errors import SettingsError

from .app import app, naming
from .options import AsJson


@app.command(cls=naming(sorts="dig.show.runs.listing:SORTS"))
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
    verdict: Annotated[
        str | None, typer.Option(help="Only runs with this verdict, `Got stuck` for instance.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Only runs in which this agent had a part in a failure.")
    ] = None,
    waiting: Annotated[
        bool,
        typer.Option("--waiting", help="List what waits for a person, and since when, instead."),
    ] = False,
    sort: Annotated[str, typer.Option(help="One of {sorts}.")] = "date",
    reverse: Annotated[bool, typer.Option("--reverse", help="Sort the other way round.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the runs of a directory.

    Task, method, agents, end, findings, score, time, tokens, notes: what all have alike stands
    below. With --json one object a line. An index beside the runs (.index.json) makes it quick; it
    may be deleted at any time.
    """
    from rich.console import Console

    from dig.show.runs import listing
    from dig.show.runs.index import overview

    if sort not in listing.SORTS:
        raise SettingsError(
            f"runs cannot be sorted by {sort!r}; try one of: {', '.join(listing.SORTS)}"
        )
    chosen = listing.RunFilter(task, method, outcome, tuple(pattern or ()), agents, verdict, agent)
    everything = overview(folder)  # from the index; only new and changed runs are read
    listed = listing.sort_runs(filter(chosen.has, everything), sort, reverse=reverse)
    if waiting:
        rows = listing.waiting_rows(listed)
        for row in rows:
            print(json.dumps(row) if as_json else listing.waiting_text(row))
        if not rows and not as_json:
            print(f"{safe_text(folder)}: nothing waits for a person")
    elif as_json:
        for run in listed:
            print(json.dumps(run.to_json()))
    elif listed:
        listing.print_list(Console(), listed)
    else:
        none_text = "no runs" if not everything else f"none of {len(everything)} runs is such a one"
        if everything and verdict is not None:
            none_text += f"; verdicts: {', '.join(sorted({run.ending for run in everything}))}"
        print(f"{safe_text(folder)}: {none_text}")
