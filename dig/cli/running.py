"""Commands that run a team: `digmon run`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from .app import app
from .asking import Asking
from .choosing import Choosing, Pacing
from .exporting import Otlp, PerAgent, exporting
from .faulting import Faults, disturbing, fault_rows
from .groups import grouped
from .keeping import Keeping
from .options import AsJson, warn
from .reporting import report_row
from .viewing import View, viewing

if TYPE_CHECKING:
    from dig.monitor.sinks import Sink
    from dig.tasks.run.execute import Execution
    from dig.tasks.run.team_run import TeamRun
    from dig.tasks.task import Task


@app.command()
@grouped
def run(
    task: Annotated[
        str,
        typer.Argument(help="What the team works on: count-frequency, newsgroups, module:object."),
    ],
    choosing: Choosing = Choosing(),  # noqa: B008 (frozen, as all groups)
    asking: Asking = Asking(),  # noqa: B008
    pacing: Pacing = Pacing(),  # noqa: B008
    keeping: Keeping = Keeping(),  # noqa: B008
    fault: Faults = None,
    otlp: Otlp = None,
    service_per_agent: PerAgent = False,
    view: View = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no live view.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a team under the monitor, and keep its trace.

    Exit status 0 if an answer was accepted, 1 if none was.
    """
    from dig.tasks.run.arrange import make_task
    from dig.tasks.run.execute import execute

    clock, kept = pacing.clock, keeping.promised()
    asked = asking.of_run(virtual=pacing.virtual, speed=pacing.speed)
    spec = choosing.of_task(task, asked)
    problem, disturb = make_task(spec), disturbing(fault)
    is_shown = not (quiet or as_json or pacing.virtual or view)
    with viewing(view) as show:
        with (
            exporting(otlp, service_per_agent, may_wait=pacing.virtual) as export,
            _watching(spec, problem, pacing.speed, is_shown) as follow,
        ):
            execution = execute(
                spec,
                keeping.runs,
                speed=clock,
                follow=follow,
                export=export,
                keeping=kept,
                task=problem,
                made=show,
                disturb=disturb,
            )
        report(execution, as_json)


def report(execution: Execution, as_json: bool) -> NoReturn:
    """Say how a run ended, and exit accordingly."""
    from rich.console import Console

    from dig.show.summary_text import summary
    from dig.show.terminal.live import print_summary
    from dig.tasks.run.execute import INTERRUPTED
    from dig.tasks.run.measures import making
    from dig.traces.journal.exchanges import EXCHANGES, are_incomplete

    if execution.unreplayable_from is not None:
        warn(f"the disk was full: nothing was kept from record {execution.unreplayable_from} on")
    if are_incomplete(execution.directory):
        warn(f"the disk was full: {EXCHANGES} does not have all that models were asked")
    if as_json:
        print(json.dumps(execution.to_json()))
    else:
        made = making(execution.agents_are, execution.data_are)
        rows = summary(execution.result, execution.score, execution.directory, made)
        rows += fault_rows(execution)
        rows.append(report_row(execution.directory, execution.result.records))
        print_summary(Console(), rows)
    if execution.result.reason == INTERRUPTED:
        raise typer.Exit(130)
    raise typer.Exit(0 if execution.result.outcome == "submitted" else 1)


@contextmanager
def _watching(run: TeamRun, task: Task, speed: float, is_shown: bool) -> Iterator[Sink]:
    """The live view, if it is to be shown, as something that follows the records of a run."""
    if not is_shown:
        yield lambda record: None
        return
    from rich.console import Console

    from dig.show.terminal.live import LiveView
    from dig.tasks.run.arrange import members
    from dig.tasks.run.team_run import SIMULATED

    title = run.name + (" (simulated agents)" if run.agents_are == SIMULATED else "")
    names = members(run, task)
    with LiveView(Console(stderr=True), title=title, agents=names, speed=speed) as view:
        yield view
