"""Options and arguments that several commands take."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

Trace = Annotated[Path, typer.Argument(help="A trace (NAME.dig.jsonl) or a run directory.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]
Given = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A threshold; `digmon thresholds` lists all."),
]
Config = Annotated[
    Path | None, typer.Option(help="A TOML file with thresholds in a table [thresholds].")
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
