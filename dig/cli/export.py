"""`digmon export` and `import`: a run for other programs, and a trace from other programs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dig._util.text import safe_text
from dig.errors import SettingsError

from .app import app, naming
from .options import At, Cleaned, PerAgent, Trace


@app.command(cls=naming(formats="dig.traces.interchange.exports:FORMATS"))
def export(
    run: Trace,
    format: Annotated[str, typer.Option(help="{formats}; or otlp: sent or, with -o, a file.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to; standard output, if not given.")
    ] = None,
    cleaned: Cleaned = False,
    at: At = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="For otlp: where to, http://localhost:4318.")
    ] = None,
    service_per_agent: PerAgent = False,
) -> None:
    """Write a run for other programs: its graph or spans.

    Without -o, the format `otlp` sends them. Exit status 1 if something could not be delivered.
    """
    from dig.traces.interchange.exports import Export, writer
    from dig.traces.journal.durable_files import journal_errors, write_output

    if format == "otlp" and out is None:
        raise typer.Exit(_send(run, endpoint, service_per_agent))
    if endpoint is not None:
        raise SettingsError(f"{format} is a file; to send the run, try --format otlp without -o")
    # In a file, OTLP is JSON.
    form = "otlp-json" if format == "otlp" else format
    pieces = writer(form)(Export(run, at, cleaned, service_per_agent))
    if out is None:
        for piece in pieces:
            getattr(sys.stdout, "unguarded", sys.stdout).write(piece)  # each form escapes lines
        return
    text = "".join(pieces)  # all of it, before there is a file
    with journal_errors("write", out):
        write_output(out, text.encode())


def _send(file: Path, endpoint: str | None, service_per_agent: bool) -> int:
    """Send a stored run to an OpenTelemetry receiver; returns the exit status."""
    from dig.traces.otel.environment import content_of_environment
    from dig.traces.otel.stored_spans import send

    content = content_of_environment()
    report = send(file, endpoint, content=content, service_per_agent=service_per_agent)
    print(f"OTLP: {report}", file=sys.stderr if report.lost else sys.stdout)
    return 1 if report.lost else 0


@app.command("import", cls=naming(formats="dig.traces.interchange.imports:FORMATS"))
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="What was recorded of one run."),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The run directory to make, or a file NAME.dig.jsonl."),
    ],
    format: Annotated[
        str | None, typer.Option(help="One of {formats}; else as the file looks.")
    ] = None,
) -> None:
    """Make a trace of a record of another program.

    That is a session of Claude Code, a team's config.json, an ATIF trajectory, a graph of the
    reference implementation (schema dig.graph.v2), spans of OpenTelemetry (those of several
    services in several files), or a message log. Runs of several processes whose agents called each
    other over A2A become one run. What the source does not say is guessed; every
    guess is told, and stands in the trace.
    """
    from dig.traces.interchange.imports import import_file, save

    imported = import_file(files[0], format, files[1:])
    path = save(imported, out)
    for guess in imported.guesses:
        print(f"digmon: guess: {safe_text(guess, 400)}", file=sys.stderr)
    for line in imported.not_looked_at:
        print(f"digmon: not looked at: {safe_text(line, 400)}", file=sys.stderr)
    print(f"{safe_text(path)}: {len(imported.records)} records, read as {imported.format}")
