"""`digmon runs` and `runs prune`: the runs of a directory, and the removal of old runs."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dig._util.text import counted, safe_text
from dig.errors import SettingsError

from .app import app, naming, print_result
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


@app.command("runs prune")
def prune(
    folder: Annotated[Path, typer.Argument(help="A directory of runs.")] = Path("runs"),
    keep_days: Annotated[
        float | None, typer.Option(min=0, help="Remove runs that ended more days ago.")
    ] = None,
    keep_mb: Annotated[
        float | None, typer.Option(min=0, help="Then the oldest, until all have so many MB.")
    ] = None,
    compress: Annotated[
        bool, typer.Option("--gzip", help="Compress the traces of the runs that stay.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; say what would go, and what stays.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove old runs, or compress traces; an option says how old.

    Removed are whole run directories that dig made and that have ended. A run stays if it is
    written, waits for a person, is the source of a fork in the same directory, is a link, or has a
    file that is not of a run, such as a note. All commands read compressed traces.
    """
    from dig.show.runs import pruning

    if keep_days is None and keep_mb is None and not compress:
        raise SettingsError("say what stays: --keep-days 30, --keep-mb 1000, or --gzip")
    runs = pruning.stored_runs(folder)
    old = pruning.to_remove(runs, keep_days, keep_mb, time.time())
    removed = [run for run in old if dry_run or pruning.remove(run)]
    kept_runs = [run for run in runs if run not in removed]
    packed = [run for run in kept_runs if compress and not (dry_run or run.stays)]
    saved = [size for run in packed if (size := pruning.compress(run))]
    rows = [
        {"run": str(run.path), "bytes": run.size, "removed": run in removed, "stays": run.stays}
        for run in runs
    ]
    print_result(as_json, lambda: rows, lambda: _pruned(rows, saved, dry_run))


def _pruned(rows: list[dict[str, Any]], saved: list[int], dry_run: bool) -> Iterator[str]:
    verb = "would be removed" if dry_run else "removed"
    for row in rows:
        if row["removed"] or (dry_run and row["stays"]):
            act = f"stays, {row['stays']}" if row["stays"] else verb
            yield f"{safe_text(row['run'])}: {act}, {row['bytes'] / 1e6:.1f} MB"
    removed = [row["bytes"] for row in rows if row["removed"]]
    yield f"{len(removed)} of {counted(len(rows), 'run')} {verb}, {sum(removed) / 1e6:.1f} MB"
    if saved:
        yield f"{counted(len(saved), 'run')} compressed, {sum(saved) / 1e6:.1f} MB less"
