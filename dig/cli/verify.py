"""`digmon verify`: a journal checked by itself."""

import typer

from dig.errors import TraceError

from .app import app, print_result
from .options import AsJson, Salvage, Trace, recover_torn_end


@app.command()
def verify(file: Trace, salvage: Salvage = False, as_json: AsJson = False) -> None:
    """Check a journal: its chain, the rules, the laws.

    The checker reads nothing but the file, and shares no code with the monitor. Exit status 0 if
    all is well, 1 if something is wrong, 2 if the file cannot be read.
    """
    from dataclasses import asdict

    from dig.show.replay_lines import is_cut, verify_lines
    from dig.traces.journal.segments import missing, trace_path
    from dig.traces.verify import verify as check_file

    path = trace_path(file)
    aside = recover_torn_end(file, salvage)
    try:
        report = check_file(path)
    except FileNotFoundError:
        raise missing(path) from None
    except OSError as error:
        raise TraceError(path, None, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise TraceError(path, None, str(error)) from None
    if aside is not None:
        damage = "the line is damaged" if aside.line else aside.what
        moved = f"{damage}; {aside.bytes} bytes were set aside in {aside.where}"
        report.add(aside.records + 1, moved)
    # The torn tail set aside above has left the file, but is still the end of this trace.
    torn = report.torn_bytes or (aside.bytes if aside else 0)
    print_result(
        as_json,
        lambda: {**asdict(report), "torn_bytes": torn, "is_cut": is_cut(path)},
        lambda: verify_lines(report, path),
    )
    raise typer.Exit(1 if report.problems else 0)
