"""`digmon fork`: a recorded run goes on from a record."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dig._util.files import read_json
from dig._util.text import one_line
from dig.errors import SettingsError

from .app import app, print_result
from .options import AsJson, FaultKinds, Further, Runs, find_run, further, group_options
from .run import report
from .run_resume import disturbance


@dataclass(frozen=True)
class ChangeOptions:
    """The changes by options; several changes are made together."""

    at: Annotated[int | None, typer.Option(min=0, help="The first record that may differ.")] = None
    edit: Annotated[
        str | None, typer.Option(help="Record --at is otherwise: JSON, or a file of JSON.")
    ] = None
    seat: Annotated[
        str | None, typer.Option(metavar="A=B", help="B decides in place of A, from --at on.")
    ] = None
    again: Annotated[
        str | None, typer.Option(metavar="ACT", help="An activation is decided once more.")
    ] = None
    tell: Annotated[
        str | None, typer.Option(metavar="A=TEXT", help="A is told a text at --at.")
    ] = None
    resend: Annotated[
        list[str] | None, typer.Option(metavar="EVENT", help="It is sent once more at --at.")
    ] = None
    to: Annotated[
        list[str] | None, typer.Option(metavar="AGENT", help="With --resend: to this agent.")
    ] = None
    omit: Annotated[int | None, typer.Option(metavar="T", help="This record does not happen.")] = (
        None
    )
    sooner: Annotated[
        str | None, typer.Option(metavar="EVENT", help="A kept event is delivered at --at.")
    ] = None
    wait: Annotated[
        float | None, typer.Option(metavar="S", help="The run may take so much longer.")
    ] = None

    def rows(self, run: Path) -> list[dict[str, Any]]:
        """Return the changes as interventions; empty without one.

        Args:
            run: The run; it says where an activation starts, for instance.

        Raises:
            SettingsError: An option is wrong.
        """
        to = {"to": self.to} if self.to else {}
        values_of: dict[str, Any] = {
            "edit": {"edit": _edit_of(self.edit)} if self.edit is not None else None,
            "seat": _pair(self.seat, "--seat A=B", "agent", "by"),
            "again": {"activation": self.again} if self.again else None,
            "tell": _pair(self.tell, "--tell A=TEXT", "agent", "note"),
            "resend": {"events": self.resend, **to} if self.resend else None,
            "omit": {"t": self.omit} if self.omit is not None else None,
            "sooner": {"event": self.sooner} if self.sooner else None,
            "wait": {"seconds": self.wait} if self.wait is not None else None,
        }
        return [
            {"kind": kind, "at": _at(kind, self.at, values, run), **values}
            for kind, values in values_of.items()
            if values is not None
        ]


@app.command()
@group_options
def fork(
    parent: Annotated[
        Path, typer.Argument(callback=find_run, metavar="RUN", help="A run directory; only read.")
    ],
    changes: ChangeOptions = ChangeOptions(),
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
    rows = changes.rows(parent)
    at = min((row["at"] for row in rows), default=changes.at)
    if at is None:
        raise SettingsError("say where it goes on: --at N; --list shows the records")
    from dig.tasks.run.crew import named_crew, task_crew
    from dig.tasks.run.run_fork import fork as go_on
    from dig.traces.journal.journal import read_side
    from dig.traces.journal.reader import trace_path
    from dig.traces.replay.kinds import read_interventions

    detectors = further(detector)
    # A task of the user's brings its tools and scorer, and then the team is made for it.
    crew = named_crew(team) if team and not task else None
    if task is not None:
        crew = task_crew(read_side(trace_path(parent).parent), task, team, detectors)
    execution = go_on(
        parent, at, runs, changes=read_interventions(rows) if rows else (), repeat=repeat,
        crew=crew, detectors=detectors, disturb=disturbance(parent, kind), real_time=real_time,
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


def _edit_of(given: str | None) -> dict[str, Any] | None:
    """Read a JSON object from a text or from a file."""
    if given is None:
        return None
    if not given.lstrip().startswith("{"):
        try:
            is_file = Path(given).exists()
        except OSError:  # longer than a name may be
            is_file = False
        if not is_file:
            raise SettingsError(f"--edit {given:.60} is neither JSON nor a file of it")
        edit = read_json(Path(given))
    else:
        try:
            edit = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"--edit is not JSON: {error}") from None
    if not isinstance(edit, dict):
        raise SettingsError(f"--edit {given:.60}: it is no JSON object")
    return edit


def _pair(text: str | None, option: str, *keys: str) -> dict[str, str] | None:
    if text is None:
        return None
    first, sign, second = text.partition("=")
    if not (first and sign and second):
        raise SettingsError(f"{option} needs two parts with = between, got {text!r}")
    return dict(zip(keys, (first, second), strict=True))


def _at(kind: str, at: int | None, values: Mapping[str, Any], run: Path) -> int:
    """The place of a change: as given, or by the kind."""
    if at is not None:
        return at
    if kind == "omit":
        return int(values["t"])
    if kind in ("again", "wait"):
        from dig.diagnosis.trials.replays import read_source

        recorded = read_source(run).run
        if kind == "wait":
            return recorded.last.t
        if values["activation"] in recorded.activations:
            return recorded.activations[values["activation"]].t
        raise SettingsError(f"there is no activation {values['activation']!r}")
    raise SettingsError(f"say from which record on: --{kind} ... --at T")
