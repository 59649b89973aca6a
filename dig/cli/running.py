"""Commands that run a team: `digmon run`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dig.errors import SettingsError

from .app import app
from .asking import Asking
from .exporting import Otlp, PerAgent, exporting
from .groups import grouped
from .options import AsJson, Config, Further, Given, Judge, further, warn
from .viewing import View, viewing

if TYPE_CHECKING:
    from dig.ledger import Sink
    from dig.tasks.execute import Execution


class Method(StrEnum):
    """What is done about failures."""

    mas = "mas"
    judge = "judge"
    dig = "dig"


class Recipients(StrEnum):
    """Who is given the problem."""

    one = "one"
    all = "all"


class Level(StrEnum):
    """A level of durability."""

    process = "process"
    effects = "effects"
    power = "power"


class DiskFull(StrEnum):
    """What happens when a record does not fit on the disk."""

    stop = "stop"
    continue_ = "continue"


Durable = Annotated[Level, typer.Option(help="What survives more than a crash of this process.")]
IfFull = Annotated[
    DiskFull, typer.Option(help="Whether to go on without a journal if the disk is full.")
]


@app.command()
@grouped
def run(
    task: Annotated[
        str,
        typer.Argument(help="What the team works on: count-frequency, newsgroups, module:object."),
    ],
    team: Annotated[
        str | None,
        typer.Option(help="Who works on it: `module:team`; else simulated agents."),
    ] = None,
    agents: Annotated[int, typer.Option(min=1, help="How many agents there are.")] = 6,
    size: Annotated[
        int | None,
        typer.Option(min=1, max=10_000_000, help="How many numbers, or posts, there are."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of the newsgroups, else DIG_NEWSGROUPS.")
    ] = None,
    to: Annotated[Recipients, typer.Option(help="Who is given the problem.")] = Recipients.one,
    seed: Annotated[int, typer.Option(help="Of everything that is random.")] = 1,
    method: Annotated[
        Method,
        typer.Option(help="mas: only find failures. judge: a judge reads along. dig: heal them."),
    ] = Method.dig,
    judge: Judge = None,
    asking: Asking = Asking(),  # noqa: B008 (frozen)
    limit: Annotated[float, typer.Option(help="Seconds after which the run is ended.")] = 120.0,
    speed: Annotated[
        float, typer.Option(help="How many times faster than real time its clock goes.")
    ] = 1.0,
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Run in virtual time: the same seed, the same bytes.")
    ] = False,
    runs: Annotated[Path, typer.Option(help="Where run directories are made.")] = Path("runs"),
    durability: Durable = Level.process,
    disk_full: IfFull = DiskFull.stop,
    otlp: Otlp = None,
    service_per_agent: PerAgent = False,
    given: Given = None,
    config: Config = None,
    detector: Further = None,
    view: View = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no live view.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a team under the monitor, and keep its trace.

    Exit status 0 if an answer was accepted, 1 if none was.
    """
    from dig.settings import Thresholds
    from dig.tasks.execute import execute
    from dig.tasks.judge import Judging
    from dig.tasks.runs import TeamRun

    if not 0 < speed <= 1000:
        raise SettingsError(f"a clock cannot go {speed:g} times as fast; try 1 to 1000")
    spec = TeamRun.of(
        task,
        Thresholds.load(given or (), config),
        size=size,
        data=str(data) if data else None,
        agents_are=team,
        agents=agents,
        seed=seed,
        method=method.value,
        limit_s=limit,
        detectors=further(detector),
        to=to.value,
        judging=Judging.of(judge or ()),
        **asking.of_run(virtual=virtual, speed=speed),
    )
    problem = spec.make_task()
    is_shown = not (quiet or as_json or virtual or view)
    with viewing(view) as show:
        with (
            exporting(otlp, service_per_agent, may_wait=virtual) as export,
            _watching(spec.members(problem), spec.name, speed, is_shown) as follow,
        ):
            execution = execute(
                spec,
                runs,
                speed=None if virtual else speed,
                follow=follow,
                export=export,
                durability=durability.value,
                disk_full=disk_full.value,
                task=problem,
                made=show,
            )
        report(execution, as_json)


def report(execution: Execution, as_json: bool) -> NoReturn:
    """Say how a run ended, and exit accordingly."""
    from rich.console import Console

    from dig.tasks.execute import INTERRUPTED
    from dig.tasks.measures import making
    from dig.traces.terminal.live import print_summary
    from dig.traces.words import summary

    if execution.unreplayable_from is not None:
        warn(f"the disk was full: nothing was kept from record {execution.unreplayable_from} on")
    if as_json:
        print(json.dumps(execution.to_json()))
    else:
        made = making(execution.agents_are, execution.data_are)
        rows = summary(execution.result, execution.score, execution.directory, made)
        print_summary(Console(), rows)
    if execution.result.reason == INTERRUPTED:
        raise typer.Exit(130)
    raise typer.Exit(0 if execution.result.outcome == "submitted" else 1)


@contextmanager
def _watching(names: Sequence[str], title: str, speed: float, is_shown: bool) -> Iterator[Sink]:
    """The live view, if it is to be shown, as something that follows the records of a run."""
    if not is_shown:
        yield lambda record: None
        return
    from rich.console import Console

    from dig.traces.terminal.live import LiveView

    with LiveView(Console(stderr=True), title=title, agents=names, speed=speed) as view:
        yield view
