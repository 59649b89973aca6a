"""The command `digmon`: thin, one function a command.

Exit status: 0 all is well, 1 something was found (`check`) or no answer came (`run`), 2 the
call or its input is wrong, 130 it was interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from .errors import DigError, SettingsError, TraceError
from .plain import safe_text

if TYPE_CHECKING:
    from .ledger import Sink

app = typer.Typer(
    name="digmon",
    help="Watch, explain and heal the collaboration of LLM agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Trace = Annotated[Path, typer.Argument(help="A trace (NAME.dig.jsonl) or a run directory.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]
Given = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A threshold; `digmon thresholds` lists all."),
]
Config = Annotated[
    Path | None, typer.Option(help="A TOML file with thresholds in a table [thresholds].")
]
Further = Annotated[
    list[str] | None,
    typer.Option("--detector", metavar="MODULE:OBJECT", help="A detector of your own, besides."),
]


class Method(StrEnum):
    """What is done about failures."""

    mas = "mas"
    dig = "dig"


def main() -> NoReturn:
    """Run the command; every error that has a name ends in one sentence."""
    try:
        app(prog_name="digmon")
    except DigError as error:
        print(f"digmon: {error}", file=sys.stderr)
    except BrokenPipeError:  # the reader of our output has gone: nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:  # standard output on a full disk, a name that is too long, ...
        print(f"digmon: {safe_text(error, 200)}", file=sys.stderr)
    sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        from . import __version__

        print(f"digmon {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    task: Annotated[str, typer.Argument(help="What the team works on: count-frequency.")],
    agents: Annotated[int, typer.Option(min=1, help="How many agents there are.")] = 6,
    size: Annotated[
        int, typer.Option(min=2, max=10_000_000, help="How many elements the array has.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="Of everything that is random.")] = 1,
    method: Annotated[
        Method, typer.Option(help="mas: only find failures. dig: heal them too.")
    ] = Method.dig,
    limit: Annotated[float, typer.Option(help="Seconds after which the run is ended.")] = 120.0,
    speed: Annotated[
        float, typer.Option(help="How many times faster than real time its clock goes.")
    ] = 1.0,
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Run in virtual time: the same seed, the same bytes.")
    ] = False,
    runs: Annotated[Path, typer.Option(help="Where run directories are made.")] = Path("runs"),
    given: Given = None,
    config: Config = None,
    detector: Further = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no live view.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a team of simulated agents under the monitor, and keep its trace.

    Exit status 0 if an answer was accepted, 1 if none was.
    """
    from rich.console import Console

    from dig.tasks.execute import INTERRUPTED, execute
    from dig.tasks.runs import CountFrequencyRun
    from dig.traces.live import print_summary
    from dig.traces.words import summary

    from .settings import Thresholds

    if task != "count-frequency":
        raise SettingsError(f"there is no task {task!r}; known are: count-frequency")
    if not 0 < speed <= 1000:
        raise SettingsError(f"a clock cannot go {speed:g} times as fast; try 1 to 1000")
    chosen, further = Thresholds.load(given or (), config), _further(detector)
    spec = CountFrequencyRun.of(chosen, agents, size, seed, method.value, limit, further)
    is_shown = not (quiet or as_json or virtual)
    with _watching(spec.names, spec.name, speed, is_shown) as follow:
        execution = execute(spec, runs, speed=None if virtual else speed, follow=follow)
    if as_json:
        print(json.dumps(execution.to_json()))
    else:
        print_summary(Console(), summary(execution.result, execution.score, execution.directory))
    if execution.result.reason == INTERRUPTED:
        raise typer.Exit(130)
    raise typer.Exit(0 if execution.result.outcome == "submitted" else 1)


@app.command()
def check(
    file: Trace, given: Given = None, detector: Further = None, as_json: AsJson = False
) -> None:
    """Look for failures in a stored trace, and explain each with the paths that prove it.

    Exit status 0 if there are none, 1 if there are some, 2 if the file cannot be read.
    """
    from dig.detectors import plugins, standard
    from dig.traces.reader import check_trace
    from dig.traces.words import explained

    from .settings import Thresholds
    from .watch import Watch

    def report(detector: str, what: str) -> None:
        print(f"digmon: detector {detector}: {what}", file=sys.stderr)

    watch = Watch([*standard(), *plugins.detectors(_further(detector))], on_fault=report)
    limits = partial(Thresholds.changed, given=given or ())
    found = [  # to the end, before anything is said of it
        json.dumps(finding.row()) if as_json else explained(finding, watch.graph)
        for finding in check_trace(file, watch, limits)
    ]
    for text in found:
        print(text)
    if not as_json:
        count = f"{len(found)} finding{'' if len(found) == 1 else 's'}"
        print(f"{count} in {watch.graph.t + 1} records of {safe_text(watch.graph.run.run, 60)}")
        if watch.graph.finished is None:
            print("The trace has no end: the run is going on, or was cut off.")
    raise typer.Exit(1 if found else 0)


@app.command()
def graph(
    file: Trace,
    cleaned: Annotated[
        bool, typer.Option("--cleaned", help="Only productive edges, and what they touch.")
    ] = False,
    at: Annotated[
        int | None, typer.Option(min=0, help="As it stood after the record at this logical time.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the Dynamic Interaction Graph of a stored trace.

    With --json as networkx node-link data, with the edges under the key `edges`.
    """
    from dig.traces.outline import outline
    from dig.traces.reader import read_graph

    from .views import GraphView

    whole = read_graph(file)
    if at is not None and at > whole.t:
        raise TraceError(file, None, f"there is no record {at}; the last one is {whole.t}")
    view = GraphView(whole, at, cleaned)
    if as_json:
        print(json.dumps(view.node_link()))
    else:
        for line in outline(view):
            print(line)


@app.command()
def thresholds(given: Given = None, config: Config = None, as_json: AsJson = False) -> None:
    """Show what "a reasonable time" and "a reasonable number" are, and why.

    Each comes from --set, from the environment (DIG_MC_WINDOW_S=20), from --config, or is the
    default, in this order.
    """
    from .settings import Thresholds

    values = Thresholds.load(given or (), config)
    if as_json:
        print(values.model_dump_json())
        return
    for name, field in Thresholds.model_fields.items():
        value = getattr(values, name)
        default = "" if value == field.default else f"  (default {field.default})"
        print(f"{name} = {json.dumps(value)}{default}")
        print(indent(field.description or "", "    "), end="\n\n")


def _further(named: Sequence[str] | None) -> tuple[str, ...]:
    """The detectors besides the standard ones: installed ones, and those that are named.

    A module in the current directory can be named, as with `python -m`.
    """
    from dig.detectors import plugins

    if named and "" not in sys.path:
        sys.path.insert(0, "")
    return tuple(dict.fromkeys((*plugins.installed(), *(named or ()))))


@contextmanager
def _watching(names: Sequence[str], title: str, speed: float, is_shown: bool) -> Iterator[Sink]:
    """The live view, if it is to be shown, as something that follows the records of a run."""
    if not is_shown:
        yield lambda record: None
        return
    from rich.console import Console

    from dig.traces.live import LiveView

    with LiveView(Console(stderr=True), title=title, agents=names, speed=speed) as view:
        yield view
