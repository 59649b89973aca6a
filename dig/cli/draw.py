"""`digmon draw`: a run as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from dig._util.text import safe_text

from .app import app
from .options import At, Cleaned, DiagnosisFile, Trace
from .report import read_diagnosis


@app.command()
def draw(
    run: Trace,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to: a name in .svg, .png or .pdf.")
    ],
    cleaned: Cleaned = False,
    at: At = None,
    first: Annotated[
        int | None, typer.Option("--from", min=0, help="Only from this logical time on.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--to", min=0, help="Only up to this logical time.")
    ] = None,
    focus: Annotated[
        str | None, typer.Option(metavar="ID", help="Only what is near an event or activation.")
    ] = None,
    hops: Annotated[int, typer.Option(min=1, help="How many edges away is near.")] = 4,
    finding: Annotated[
        int | None,
        typer.Option(metavar="T", help="Only the paths that prove the finding of this record."),
    ] = None,
    fold: Annotated[
        bool | None,
        typer.Option(
            "--fold/--no-fold",
            help="Draw lanes that behave alike once; by default if there are more than 8 agents.",
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(min=2, max=200, help="The width in inches; letters keep their size."),
    ] = None,
    diagnosis: DiagnosisFile = None,
) -> None:
    """Draw a run for a paper: SVG, PNG or PDF.

    It shows the graph in agent lanes, and a timeline of the agents below it. SVG
    needs nothing else; PNG and PDF need matplotlib: pip install "dig-monitor[draw]".
    """
    from dig.show.figure.drawing import Drawing, check_format
    from dig.show.figure.selection import RunPart

    check_format(out)
    part = RunPart(cleaned, at, first, last, focus, hops, finding, fold)
    Drawing.of(run, part, width, read_diagnosis(run, diagnosis)[0]).save(out)
    print(f"{safe_text(out)}: {out.stat().st_size:,} bytes")
