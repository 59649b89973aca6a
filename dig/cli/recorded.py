"""Commands about runs that were recorded: `digmon verify`, `digmon replay`, `digmon fork`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dig.errors import SettingsError, TraceError

from .app import app
from .options import AsJson, Further, Salvage, Trace, further, recovered
from .running import report

if TYPE_CHECKING:
    from dig.runtime.host import Setup


@app.command()
def verify(file: Trace, salvage: Salvage = False, as_json: AsJson = False) -> None:
    """Check a journal against its chain, the rules, and the laws of conservation.

    The checker reads nothing but the file, and shares no code with the monitor. Exit status 0 if
    all is well, 1 if something is wrong, 2 if the file cannot be read.
    """
    from dataclasses import asdict

    from dig.show.verdict import is_cut, verdict
    from dig.traces.journal.segments import missing, trace_path
    from dig.traces.verify import verify as check_file

    path = trace_path(file)
    aside = recovered(file, salvage)
    try:
        report = check_file(path)
    except FileNotFoundError:
        raise missing(path) from None
    except OSError as error:
        raise TraceError(path, None, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise TraceError(path, None, str(error)) from None
    if aside is not None:
        what = "the line is damaged" if aside.line else aside.what
        moved = f"{what}; {aside.bytes} bytes were set aside in {aside.where}"
        report.add(aside.records + 1, moved)
    if as_json:
        torn = report.torn_bytes or (aside.bytes if aside else 0)
        print(json.dumps({**asdict(report), "torn_bytes": torn, "is_cut": is_cut(path)}))
    else:
        print("\n".join(verdict(report, path)))
    raise typer.Exit(1 if report.problems else 0)


@app.command()
def replay(
    file: Trace,
    again: Annotated[
        bool, typer.Option("--rerun", help="Drive the monitor again; compare every record.")
    ] = False,
    at: Annotated[
        int | None, typer.Option(min=0, help="Only up to the record at this logical time.")
    ] = None,
    detector: Further = None,
    salvage: Salvage = False,
    as_json: AsJson = False,
) -> None:
    """Replay a run from its trace, without agents, clock or network.

    Rebuilds the graph and the findings; with --rerun the same monitor is driven by the recorded
    decisions, and every record must come out as it was recorded. Exit status 0 if all is the
    same, 1 if it is not, 2 if that cannot be told.
    """
    from dig.show.verdict import told
    from dig.traces.journal.reader import trace_path

    if again and at is not None:
        raise SettingsError("--rerun is for the whole run; leave --at out")
    recovered(file, salvage)
    path = trace_path(file)
    setup = _setup_beside(path, further(detector)) if again else None
    is_same, lines, data = told(path, again, at, setup)
    print(json.dumps(data) if as_json else "\n".join(lines))
    raise typer.Exit(0 if is_same else 1)


def _setup_beside(path: Path, detectors: tuple[str, ...]) -> Setup | None:
    """The setup of a run of simulated agents that had detectors of a user's own."""
    from dig.tasks.run.fork import simulated_crew
    from dig.traces.journal.journal import SIDE, read_side
    from dig.traces.replay.header import header_of
    from dig.traces.replay.requests import RecordedRequests

    said = RecordedRequests(path, payloads=False).header
    if said and (path.parent / SIDE).exists() and header_of(path, said).foreign:
        return simulated_crew(read_side(path.parent), detectors).setup
    return None


@app.command()
def fork(
    parent: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory; only read.")],
    at: Annotated[int, typer.Option(min=0, help="The first record that may be different.")],
    edit: Annotated[
        str | None,
        typer.Option(help="What stands in that record instead: JSON, or a file of JSON."),
    ] = None,
    team: Annotated[
        str | None, typer.Option(help="Who goes on: `module:team`, instead of simulated agents.")
    ] = None,
    detector: Further = None,
    runs: Annotated[Path, typer.Option(help="Where run directories are made.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Let a recorded run go on from a record, changed or not, in a directory of its own.

    What can be changed: `fates` and `outputs` (or `error`) of an `end`, `payload`, `to` and `type`
    of an `emit`, `note` and `to` of a `heal`, `to` of a `redirect`. Exit status as for `run`.
    """
    from dig.tasks.run.fork import fork as go_on
    from dig.tasks.run.fork import named_crew

    crew = named_crew(team) if team else None
    execution = go_on(parent, at, runs, edit=_edit(edit), crew=crew, detectors=further(detector))
    report(execution, as_json)


def _edit(given: str | None) -> dict[str, Any] | None:
    """A JSON object, given as it is or as a file."""
    if given is None:
        return None
    text, where = given, "--edit"
    if not given.lstrip().startswith("{"):
        where = given
        try:
            text = Path(given).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{given} is neither JSON nor a file of it: {error}") from None
    try:
        edit = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{where} is not JSON: {error}") from None
    if not isinstance(edit, dict):
        raise SettingsError(f"{where} is no JSON object")
    return edit
