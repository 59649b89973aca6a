"""`digmon run`: a team works on a task under the monitor; `digmon faults`: faults to inject."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dig._util.text import safe_text
from dig.errors import DigError, SettingsError

from .app import INTERRUPTED, app, naming, print_result, warn
from .options import Alert, AsJson, ClockOptions, PerAgent, StorageOptions, group_options
from .run_options import ModelOptions, RunOptions
from .run_resume import check_options
from .run_resume import resume as resume_run
from .view import View, viewing

if TYPE_CHECKING:
    from dig.faults.inject.fault_catalogue import Kind
    from dig.monitor.sinks import Sink
    from dig.runtime.alerts import AlertCounts
    from dig.show.summary_text import Row
    from dig.show.terminal.live import LiveView
    from dig.tasks.run.arrange import Disturbance
    from dig.tasks.run.execute import Execution
    from dig.tasks.run.methods import Arrangement
    from dig.tasks.run.team_run import TeamRun
    from dig.tasks.task import Task
    from dig.traces.otel.follow import Exporting


MOST_RECORDS = 20_000
"""Of a longer run a report is written on demand only: it would take seconds."""

Faults = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="'KIND target=AGENT ..'",
        help="Inject a fault, such as 'crash target=agent-3 start=10'; `digmon faults` lists all.",
    ),
]
Twin = Annotated[
    bool,
    typer.Option(
        "--twin", help="Play the run in virtual time, watched and unwatched, and compare the two."
    ),
]
Otlp = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Send traces, metrics and logs there: http://localhost:4318."),
]
OpenS = Annotated[
    float | None,
    typer.Option(min=0, help="Seconds between two signs of open work in traces (30); 0: none."),
]


Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="Go on with a run whose process ended, in its own directory and as it was made.",
    ),
]


@app.command(cls=naming(tasks="dig.tasks.catalogue:TASKS"))
@group_options
def run(
    task: Annotated[
        str | None, typer.Argument(help="What the team works on: {tasks}, module:object.")
    ] = None,
    chosen: RunOptions = RunOptions(),  # noqa: B008 (frozen, as all groups)
    models: ModelOptions = ModelOptions(),  # noqa: B008
    clock: ClockOptions = ClockOptions(),  # noqa: B008
    storage: StorageOptions = StorageOptions(),  # noqa: B008
    fault: Faults = None,
    twin: Twin = False,
    alert: Alert = None,
    otlp: Otlp = None,
    otlp_open_s: OpenS = None,
    service_per_agent: PerAgent = False,
    resume: Resume = None,
    view: View = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no live view.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a team under the monitor, and keep its trace.

    Exit status 0 if an answer was accepted, 1 if none was.
    """
    from dig.detectors.settings_file import find_settings
    from dig.monitor.sinks import FanOut
    from dig.runtime.alerts import Alerts
    from dig.tasks.run.arrange import make_task
    from dig.tasks.run.execute import execute

    # All that can be wrong with the call is found before the run begins.
    alerts = Alerts.load(alert or (), find_settings(chosen.config), is_named=bool(chosen.config))
    rate, keeping = None if twin else clock.rate, storage.keeping()
    if resume is not None:
        check_options(resume, chosen, clock, fault, twin, otlp, service_per_agent, otlp_open_s)
        with viewing(view) as show:
            execution = resume_run(
                resume, task, chosen, models, keeping=keeping, alerts=alerts, on_directory=show,
                is_shown=not (quiet or as_json or view),
            )  # fmt: skip
            report(execution, as_json, () if alerts is None else alerts.flush())
    if task is None:
        raise SettingsError("name the task, such as count-frequency, or a run to --resume")
    model_options = models.of_run(virtual=clock.virtual, speed=clock.speed, limit_s=chosen.limit)
    spec = chosen.of_task(task, model_options)
    problem, disturb = make_task(spec), disturbing(fault)
    is_shown = not (quiet or as_json or clock.virtual or view)
    # The twin is over before there is a page or a live view.
    unwatched = _play_twin(spec, storage.runs, disturb) if twin else None
    with viewing(view) as show:  # outermost: at a terminal the page is served after the run, too
        with (
            exporting(otlp, service_per_agent, clock.virtual, otlp_open_s) as export,
            _watching(spec, problem, clock.speed, is_shown) as live,
        ):
            sinks: list[Sink | None] = [_pace(clock, twin), live, alerts.sink() if alerts else None]
            execution = execute(
                spec, storage.runs, speed=rate, export=export, keeping=keeping, task=problem,
                follow=FanOut(*filter(None, sinks)), on_directory=show, disturb=disturb,
                tell=live.tell if live else warn,
            )  # fmt: skip
        report(execution, as_json, () if alerts is None else alerts.flush(), unwatched)


def _pace(clock: ClockOptions, twin: bool) -> "Sink | None":
    """Make a sink for the pace of a run with a twin, which is in virtual time, too."""
    if clock.virtual or not twin:
        return None
    # So the first difference of the two is an act of the monitor, and no chance of the clock.
    begin = time.monotonic()
    return lambda record: time.sleep(
        max(0.0, begin + record.us / (1_000_000 * clock.speed) - time.monotonic())
    )


def _play_twin(
    spec: "TeamRun", runs: Path, disturb: "Callable[[Arrangement], Disturbance]"
) -> "Execution":
    """Play a run in virtual time without healing, with the same faults.

    Raises:
        SettingsError: Its agents cannot work in virtual time.
    """
    from dig.tasks.run.execute import execute
    from dig.tasks.run.team_run import MODEL

    if spec.agents_are.partition(" ")[0] == MODEL:
        raise SettingsError("a language model has no twin: it answers anew; leave --twin out")
    return execute(replace(spec, method="mas"), runs, disturb=disturb)


def report(
    execution: "Execution",
    as_json: bool,
    alerts: "Sequence[AlertCounts]" = (),
    twin: "Execution | None" = None,
) -> NoReturn:
    """Say how a run ended, and exit accordingly.

    Args:
        execution: The run.
        as_json: Whether to print JSON.
        alerts: The fates of its alarms, for each destination.
        twin: The same run unwatched; it is told in five lines what the monitor changed.
    """
    from rich.console import Console

    from dig.show.summary_text import summary
    from dig.show.terminal.live import print_summary
    from dig.tasks.run.execute import INTERRUPTED as BY_SIGNAL
    from dig.tasks.run.measures import origin_rows
    from dig.traces.journal.exchanges import EXCHANGES, are_incomplete

    if execution.unreplayable_from is not None:
        lost_part = f"nothing was kept from record {execution.unreplayable_from} on"
        warn(f"the disk was full, or the trace's file was taken away: {lost_part}")
    if are_incomplete(execution.directory):
        warn(f"the disk was full: {EXCHANGES} does not have all that models were asked")
    if as_json:
        twin_row = {"twin": twin.to_json()} if twin else {}
        print(json.dumps({**execution.to_json(), **twin_row}))
    elif twin is not None:
        row = _report_row(execution.directory, execution.result.records, twin.directory)
        print_summary(Console(), [*twin_rows(execution, twin), row, NEXT])
    else:
        print_summary(Console(), execution.verdict.lines())
        print()
        team_text = origin_rows(execution.agents_are, execution.data_are)
        rows = summary(execution.result, execution.directory, team_text)
        rows += cost_rows(execution)
        rows += fault_rows(execution)
        rows += [("alerts", str(counts)) for counts in alerts]
        rows.append(_report_row(execution.directory, execution.result.records))
        print_summary(Console(), rows)
    # A signal ends a run in good order, so the summary above is there; only the status tells.
    if execution.result.reason == BY_SIGNAL:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(0 if execution.result.outcome == "submitted" else 1)


NEXT = ("your own team", "team = dig.wrap(team) monitors it: docs/wrapping.md")


def _report_row(directory: Path, records: int, twin: Path | None = None) -> tuple[str, str]:
    """Write the report of an ended run; returns a row with the path or with the command.

    Args:
        directory: The run directory.
        records: The number of records in it.
        twin: The run directory of its twin, which stands beside it.
    """
    from dig.show.page.writing import write_report

    command = f"digmon report {safe_text(directory)}"
    if twin is not None:
        command += f" --twin {safe_text(twin)}"
    if records > MOST_RECORDS:
        return "report", command
    try:
        return "report", safe_text(write_report(directory, twin=twin).path)
    except DigError as error:  # the run is over, and kept: a picture of it is not worth a failure
        warn(f"no report was written: {error}")
        return "report", command


def twin_rows(execution: "Execution", twin: "Execution") -> "list[Row]":
    """Return the difference made by the monitor: both ends, and the healing."""
    without, watched = twin.verdict, execution.verdict
    return [
        ("without the monitor", without.headline),
        ("with it", watched.headline),
        ("what it did", watched.monitor),
    ]


@contextmanager
def _watching(
    run: "TeamRun", task: "Task", speed: float, is_shown: bool
) -> "Iterator[LiveView | None]":
    """The live view of a run, unless nothing is to be shown."""
    if not is_shown:
        yield None
        return
    from rich.console import Console

    from dig.show.terminal.live import LiveView
    from dig.tasks.run.arrange import members
    from dig.tasks.run.team_run import SIMULATED

    title = run.name + (" (simulated agents)" if run.agents_are == SIMULATED else "")
    names = members(run, task)
    with LiveView(Console(stderr=True), title=title, agents=names, speed=speed) as view:
        yield view


def disturbing(faults: Sequence[str] | None) -> "Callable[[Arrangement], Disturbance]":
    """Return a function to inject the faults into the team of a run.

    Raises:
        SettingsError: One of the faults is not written as a fault is.
    """
    from dig.tasks.run.arrange import Disturbance

    if not faults:
        return Disturbance
    from dig.faults.inject.fault import Fault
    from dig.faults.inject.faulty_team import FaultyTeam

    return partial(FaultyTeam.of_arrangement, faults=[Fault.parse(text) for text in faults])


def fault_rows(execution: "Execution") -> "list[Row]":
    """The row of the summary about injected faults, if there were any."""
    injections: list[Mapping[str, Any]] | None = execution.disturbed.get("injections")
    if injections is None:
        return []
    from dig._util.text import counted

    if not injections:
        return [("faults", "none had an occasion to act")]
    first = injections[0]
    first_act = f"first at record {first['t']}, {first['agent']}: {first['what']}"
    return [("faults", f"acted {counted(len(injections), 'time')}, {first_act}")]


def cost_rows(execution: "Execution") -> "list[Row]":
    """The rows of the summary about tokens, money, and models without strict schemas."""
    from dig.traces.usage import cost_text

    cost = cost_text(execution.counts.sums)
    modes = [f"{safe_text(name, 80)}: {mode}" for name, mode in execution.json_modes.items()]
    rows = [("cost", cost), ("json mode", ", ".join(modes))]
    return [row for row in rows if row[1]]


@contextmanager
def exporting(
    endpoint: str | None, service_per_agent: bool, may_wait: bool, open_s: float | None
) -> "Iterator[Exporting | None]":
    """Open an export to the OpenTelemetry receiver of the call or the environment, if any.

    Args:
        endpoint: The receiver's address; ``None``: the one that the environment names.
        service_per_agent: Whether each agent is a service of its own.
        may_wait: Whether the run may wait for the export, as in virtual time.
        open_s: The seconds between two signs of what is still open; ``None``: the default.
    """
    from dig.traces.otel.environment import content_of_environment, is_configured

    is_sent = bool(endpoint or is_configured())
    if open_s is not None and (may_wait or not is_sent):
        raise SettingsError("--otlp-open-s needs --otlp, and a run that is not in virtual time")
    if not is_sent:
        yield None
        return
    from dig.traces.otel.follow import sending

    content = content_of_environment()
    with sending(
        endpoint, lambda report: warn(f"OTLP: {report}"), content=content,
        service_per_agent=service_per_agent, may_wait=may_wait, open_s=open_s,
    ) as export:  # fmt: skip
        yield export


@app.command()
def faults(as_json: AsJson = False) -> None:
    """Show the faults that a run can be given (`run --fault`)."""
    from dig.faults.inject.fault_catalogue import KINDS

    kinds = KINDS.values()
    print_result(as_json, lambda: [kind.to_json() for kind in kinds], lambda: map(_about, kinds))


def _about(kind: "Kind") -> str:
    raises = ", ".join(kind.raises) or "no pattern for sure"
    may = f"; it may raise {', '.join(kind.may_raise)}" if kind.may_raise else ""
    lines = [kind.meaning, f"Raises {raises}{may}."]
    for name, parameter in kind.parameters.items():
        choices = f" ({', '.join(parameter.choices)})" if parameter.choices else ""
        default = "no limit" if parameter.default is None else parameter.default
        lines.append(f"{name} = {default}  {parameter.meaning}{choices}")
    return "\n    ".join([f"{kind.name} ({kind.family})", *lines]) + "\n"
