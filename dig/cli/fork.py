"""`digmon fork`: a recorded run goes on from a record."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dig._util.files import read_file
from dig._util.text import one_line
from dig.errors import SettingsError

from .app import app, print_result
from .options import AsJson, FaultKinds, Further, Runs, further
from .run import report
from .run_resume import disturbance


@app.command()
def fork(
    parent: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory; only read.")],
    at: Annotated[
        int | None, typer.Option(min=0, help="The first record that may be different.")
    ] = None,
    edit: Annotated[
        str | None,
        typer.Option(help="What stands in that record instead: JSON, or a file of JSON."),
    ] = None,
    team: Annotated[
        str | None, typer.Option(help="The team: `module:team`, instead of simulated agents.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="The run's task, for its tools and its scorer; also its own team."),
    ] = None,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Go on in real time, for agents that wait.")
    ] = False,
    repeat: Annotated[
        int,
        typer.Option(min=0, help="Draw the random numbers of this repeat; 0: those of the run."),
    ] = 0,
    listed: Annotated[
        bool, typer.Option("--list", help="Only list the records, and what can be changed there.")
    ] = False,
    detector: Further = None,
    kind: FaultKinds = None,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Let a recorded run go on from a record, with a change.

    What can be changed: `fates` and `outputs` (or `error`) of an `end`, `payload`, `to` and `type`
    of an `emit`, `note` and `to` of a `heal`, `to` of a `redirect`. Exit status as for `run`.
    """
    if listed:
        _print_records(parent, as_json)
        return
    if at is None:
        raise SettingsError("say where it goes on: --at N; --list shows the records")
    from dig.tasks.run.run_fork import fork as go_on
    from dig.tasks.run.run_fork import named_crew, task_crew
    from dig.traces.journal.journal import read_side
    from dig.traces.journal.reader import trace_path

    detectors = further(detector)
    # A task of the user's brings its tools and scorer, and then the team is made for it.
    crew = named_crew(team) if team and not task else None
    if task is not None:
        crew = task_crew(read_side(trace_path(parent).parent), task, team, detectors)
    execution = go_on(
        parent, at, runs, edit=edit_of(edit), repeat=repeat, crew=crew, detectors=detectors,
        disturb=disturbance(parent, kind), real_time=real_time,
    )  # fmt: skip
    report(execution, as_json)


def _print_records(parent: Path, as_json: bool) -> None:
    from dig.traces.replay.planned import ChangeableRecord, changeable_records

    def line(changeable: ChangeableRecord) -> str:
        record = changeable.record
        edits = [f"edit {', '.join(changeable.keys)}"] if changeable.keys else []
        row = (
            f"{record.t:>6}  {record.ts:>10.3f}  {record.kind:<9} {one_line(changeable.about):<40}"
        )
        return f"{row} {'; '.join([*edits, *changeable.changes])}".rstrip()

    records = list(changeable_records(parent))
    print_result(
        as_json,
        lambda: [changeable.to_json() for changeable in records],
        lambda: map(line, records),
    )


def edit_of(given: str | None) -> dict[str, Any] | None:
    """Read a JSON object from a text or from a file."""
    if given is None:
        return None
    text, origin = given, "--edit"
    if not given.lstrip().startswith("{"):
        origin = given
        try:
            text = read_file(Path(given)).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{given} is neither JSON nor a file of it: {error}") from None
    try:
        edit = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{origin} is not JSON: {error}") from None
    if not isinstance(edit, dict):
        raise SettingsError(f"{origin} is no JSON object")
    return edit
