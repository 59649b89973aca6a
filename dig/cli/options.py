"""Options and arguments that several commands take."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dig._util.text import safe_text
from dig.errors import JournalError

if TYPE_CHECKING:
    from dig.traces.journal.recovery import SetAside

Trace = Annotated[Path, typer.Argument(help="A trace (NAME.dig.jsonl) or a run directory.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]
Salvage = Annotated[
    bool, typer.Option("--salvage", help="Set damaged lines aside, and all that follows them.")
]
Cleaned = Annotated[
    bool, typer.Option("--cleaned", help="Only productive edges, and what they touch.")
]
At = Annotated[
    int | None, typer.Option(min=0, help="As it stood after the record at this logical time.")
]
Given = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A threshold; `digmon thresholds` lists all."),
]
Config = Annotated[
    Path | None, typer.Option(help="A TOML file with thresholds in a table [thresholds].")
]
Judge = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="How the judge judges: every=10, recall=0.6, ..."),
]
Further = Annotated[
    list[str] | None,
    typer.Option("--detector", metavar="MODULE:OBJECT", help="A detector of your own, besides."),
]


def further(named: Sequence[str] | None) -> tuple[str, ...]:
    """The detectors besides the standard ones: installed ones, and those that are named.

    A module in the current directory can be named, as with `python -m`.
    """
    from dig.detectors import plugins

    if named and "" not in sys.path:
        sys.path.insert(0, "")
    return tuple(dict.fromkeys((*plugins.installed(), *(named or ()))))


def warn(what: object) -> None:
    """Say something beside what was asked for."""
    print(f"digmon: {safe_text(what)}", file=sys.stderr)


def recovered(file: Path, salvage: bool) -> SetAside | None:
    """Set a torn end of a journal aside, and say so."""
    from dig.traces.journal.recovery import recover

    try:
        aside = recover(file, salvage=salvage)
    except JournalError as error:
        if salvage:
            raise
        warn(error)  # a run that is only there to be read can be read with a torn end, too
        return None
    if aside is not None:
        warn(aside)
    return aside
