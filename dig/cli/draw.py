"""`digmon draw`: a run as a picture."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from dig._util.text import safe_text

from .app import app
from .options import At, DiagnosisFile, Trace, group_options
from .report import read_diagnosis


@dataclass(frozen=True)
class PartOptions:
    """The part of a run to draw, as `RunPart` has it."""

    cleaned: Annotated[
        bool | None,
        typer.Option(
            "--cleaned/--raw",
            help="Only productive edges, and what they touch; by default where a whole run is "
            "drawn at a paper's width (7.5 inches or less).",
        ),
    ] = None
    at: At = None
    first: Annotated[
        int | None, typer.Option("--from", min=0, help="Only from this logical time on.")
    ] = None
    last: Annotated[
        int | None, typer.Option("--to", min=0, help="Only up to this logical time.")
    ] = None
    focus: Annotated[
        str | None, typer.Option(metavar="ID", help="Only what is near an event or activation.")
    ] = None
    hops: Annotated[int, typer.Option(min=1, help="How many edges away is near.")] = 4
    finding: Annotated[
        int | None,
        typer.Option(metavar="T", help="Only the paths that prove the finding of this record."),
    ] = None
    fold: Annotated[
        bool | None,
        typer.Option(
            "--fold/--no-fold",
            help="Draw lanes that behave alike once; by default if there are more than 8 agents.",
        ),
    ] = None


@app.command()
@group_options
def draw(
    run: Trace,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to: a name in .svg, .png or .pdf.")
    ],
    options: PartOptions = PartOptions(),
    twin: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Another run of the same team, below it on one scale."),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(min=2, max=200, help="The width in inches; letters keep their size."),
    ] = None,
    no_title: Annotated[
        bool, typer.Option("--no-title", help="Leave out title and description: for a caption.")
    ] = False,
    no_legend: Annotated[bool, typer.Option("--no-legend", help="Leave out the legend.")] = False,
    diagnosis: DiagnosisFile = None,
) -> None:
    """Draw a run for a paper: SVG, PNG or PDF.

    It shows the graph in agent lanes, and a timeline of the agents below it. SVG
    needs nothing else; PNG and PDF need matplotlib: pip install "dig-monitor[draw]".
    """
    from dig.show.figure.drawing import Drawing, check_format
    from dig.show.figure.selection import RunPart

    check_format(out)
    part, (cause, _) = RunPart(**asdict(options)), read_diagnosis(run, diagnosis)
    picture = Drawing.of(
        run, part, width, cause, twin, has_title=not no_title, has_legend=not no_legend
    )
    picture.save(out)
    print(f"{safe_text(out)}: {out.stat().st_size:,} bytes")
