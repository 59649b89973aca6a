"""`digmon experiment`: a grid of many runs."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dig.cli.app import app, print_result, progress_shown, warn
from dig.cli.options import AsJson, Config, Given, Jobs, Judge, group_options
from dig.cli.run_options import ModelOptions
from dig.errors import SettingsError

if TYPE_CHECKING:
    from dig.lab.experiment.grid import Grid
    from dig.lab.experiment.run import Outcome


GRIDS = ("paper", "ablation", "traces")
GridName = Annotated[
    str,
    typer.Argument(metavar="what", help=f"{', '.join(GRIDS)}, or a TOML file with your own grid."),
]


@app.command()
@group_options
def experiment(
    name: GridName,
    out: Annotated[Path, typer.Option(help="Where results go, and where they are taken up.")],
    runs: Annotated[
        int | None, typer.Option(min=1, help="How many seeds each setting is run with (100).")
    ] = None,
    jobs: Jobs = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(help="Only these tasks: newsgroups, or yours, as module:object."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", "--method", help="Only these methods: dig, or module:object."),
    ] = None,
    agents: Annotated[
        list[str] | None, typer.Option(help="How large the teams are (1,3,6).")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Where the data of newsgroups are.")] = None,
    judge: Judge = None,
    models: ModelOptions = ModelOptions(),  # noqa: B008 (frozen)
    keep: Annotated[bool, typer.Option("--keep", help="Keep the traces of the runs.")] = False,
    thresholds: Given = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods over a grid of tasks and teams.

    What is there already is not run again, so that one that was interrupted goes on. `paper` is
    the paper's grid; `ablation` says what each part of healing contributes; `traces` makes a set
    of traces. Exit status 0 if all runs were carried out, 1 if some were not.
    """
    from dig.lab.experiment import ablation, run, trace_set
    from dig.lab.experiment import experiment_report as report

    chosen: dict[str, Any] = {"tasks": _split(tasks), "methods": _split(methods), "data": data}
    chosen |= {"agents": _sizes(agents), "judge": judge, "set": thresholds, "config": config}
    chosen |= {"model": models.of_run(virtual=False, speed=1)}
    make = _paper if name in GRIDS else _own
    grid = make(name, chosen)
    if runs is not None:
        grid = replace(grid, seeds=tuple(range(1, runs + 1)))
    if grid.max_tokens is not None or grid.max_usd is not None:
        jobs = jobs or 1  # one process keeps the budget
    jobs = jobs or os.cpu_count() or 1
    note = f"what is done is kept in {out}, and the same command goes on from there"
    with progress_shown(f"interrupted; {note}") as tell:
        progress = partial(tell, "runs")
        in_short: list[str] = []
        if name == "traces":
            outcome = trace_set.make_set(grid, out, progress)
            written = [out / trace_set.CARD, out / trace_set.INDEX]
        elif name == "ablation":
            outcome, tables, words = ablation.ablate(grid, out, jobs=jobs, progress=progress)
            written = report.write_tables(tables, out, words)
            in_short += words.get(report.HEADLINE, ())
        else:
            outcome = run.carry_out(grid, out, jobs=jobs, keep=keep, progress=progress, tell=warn)
            written, in_short = report.write_report(grid, outcome.rows, out)
    _report(outcome, written, in_short, as_json)


def _paper(size_name: str, chosen: dict[str, Any]) -> "Grid":
    """The paper's grid, or a part."""
    model, data = chosen["model"], chosen["data"]
    if chosen["methods"] and size_name == "ablation":
        raise SettingsError("ablation compares parts of one method; leave --methods out")
    if model and size_name != "paper":
        raise SettingsError(f"{size_name} needs virtual time, and a language model real time")
    from dig.detectors.thresholds import Thresholds
    from dig.lab.experiment.grid import Grid, on_windows, paper_tasks
    from dig.tasks.run.judging import Judging

    # A budget holds for the whole grid, and so must not become an option of each run.
    options = model.get("options", {})
    budget = {name: options.pop(name, None) for name in ("max_tokens", "max_usd")}
    grid = Grid(
        name=size_name,
        tasks=paper_tasks(chosen["tasks"], str(data) if data else None, **model),
        speed=1.0 if model else None,
        thresholds=on_windows(Thresholds.load(chosen["set"] or (), chosen["config"])),
        judging=Judging.of(chosen["judge"] or ()),
        **budget,
    )
    if model:  # each run costs money
        grid = replace(grid, seeds=grid.seeds[:10])
    agents, methods = chosen["agents"] or grid.agents, tuple(chosen["methods"]) or grid.methods
    return replace(grid, agents=agents, methods=methods)


def _split(values: list[str] | None) -> list[str]:
    """Split values at commas."""
    return [part.strip() for text in values or () for part in text.split(",") if part.strip()]


def _sizes(values: list[str] | None) -> tuple[int, ...]:
    sizes = _split(values)
    for size in sizes:
        if not size.isdecimal() or int(size) < 1:
            raise SettingsError(f"--agents {size}: a team's size is a number, such as 3")
    return tuple(int(size) for size in sizes)


def _own(file: str, chosen: dict[str, Any]) -> "Grid":
    from dig.lab.experiment.file import read_grid

    path = Path(file)
    if path.suffix != ".toml":
        raise SettingsError(
            f"there is no experiment {file!r}; known are: {', '.join(GRIDS)}, and FILE.toml"
        )
    # The file is the whole description of an experiment; an option would make it untrue.
    besides = [name for name, value in chosen.items() if value]
    if besides:
        raise SettingsError(f"leave --{besides[0]} out: it stands in {path}")
    return read_grid(path)


def _report(outcome: "Outcome", written: list[Path], headline: list[str], as_json: bool) -> None:
    """Print the result of an experiment, and exit with its status.

    Args:
        outcome: The runs.
        written: The files that were written.
        headline: The result in words.
        as_json: Whether the report is printed as JSON.
    """
    # On stderr, so that stdout stays one JSON document.
    for failed in outcome.failed:
        warn(f"{failed.run}: {failed.why}")
    reasons = {failed.run: failed.why for failed in outcome.failed}
    files = [str(path) for path in written]
    print_result(
        as_json,
        lambda: {
            "runs": len(outcome.rows),
            "failed": reasons,
            "files": files,
            "headline": headline,
        },
        lambda: ["\n  ".join([f"{len(outcome.rows)} runs", *files]), *headline],
    )
    raise typer.Exit(1 if outcome.failed else 0)
