"""`digmon report`: a run as one HTML file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dig._util.text import one_line, safe_text
from dig.errors import SettingsError

from .app import app, print_result
from .options import AsJson, DiagnosisFile, Salvage, Trace, recover_torn_end

if TYPE_CHECKING:
    from dig.show.cause import KnownCause


@app.command()
def report(
    run: Trace,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file to write; report.html in the run directory."),
    ] = None,
    twin: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Another run of the same team, beside it on one time."),
    ] = None,
    diagnosis: DiagnosisFile = None,
    no_payloads: Annotated[
        bool, typer.Option("--no-payloads", help="Leave out what agents said to one another.")
    ] = False,
    salvage: Salvage = False,
    as_json: AsJson = False,
) -> None:
    """Write the page of a run: one HTML file, works offline.

    It can be mailed; it needs nothing beside it and asks nothing of any network.
    """
    from dataclasses import asdict

    from dig.show.page.writing import write_report

    recover_torn_end(run, salvage)
    cause, fork = read_diagnosis(run, diagnosis)
    page = write_report(run, out, payloads=not no_payloads, twin=twin or fork, cause=cause)
    cut = f"; payloads are cut at {page.cut:,} characters" if page.cut else "; without payloads"
    size = f"{page.bytes / 1e6:.1f} MB" if page.bytes >= 1e6 else f"{page.bytes / 1e3:.0f} kB"
    print_result(
        as_json,
        lambda: {**asdict(page), "path": str(page.path)},
        lambda: [f"{safe_text(page.path)}: {page.records:,} records, {size}{cut}"],
    )


def read_diagnosis(run: Path, file: Path | None) -> "tuple[KnownCause | None, Path | None]":
    """Read the cause of a diagnosis, and the fork with the helpful change, if there is one.

    Args:
        run: The run that is explained.
        file: The diagnosis; ``None``: there is none.

    Raises:
        JournalError: The file cannot be read.
        SettingsError: It is no diagnosis, or that of another trace.
    """
    if file is None:
        return None, None
    from dig._util.files import checksum, is_there, read_file
    from dig.show.document import Diagnosis, best_fork, cause, forks_beside
    from dig.traces.journal.durable_files import cannot
    from dig.traces.journal.segments import trace_path

    try:
        document = Diagnosis.from_json(read_file(file))
    except OSError as error:
        raise cannot("read", file, error) from None
    except SettingsError as error:
        page = f"`digmon why {safe_text(run)} --json` prints one"
        raise SettingsError(f"{safe_text(file)}: {error}; {page}") from None
    # Record numbers of another trace would point at whatever stands there in this one.
    trace = trace_path(run)
    if is_there(trace) and document.source.sha256 != checksum(trace):
        raise SettingsError(
            f"{safe_text(file)}: this is the diagnosis of another trace "
            f"({one_line(document.source.name, 80)}), or of a run that has gone on since; "
            f"`digmon why {safe_text(run)} --json` prints that of this one"
        )
    return cause(document), best_fork(document, forks_beside(run))
