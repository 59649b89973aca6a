"""`digmon bench`: sets of runs with a known cause of failure."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dig._util.text import counted
from dig.cli.app import app, naming, print_result, progress_shown
from dig.cli.options import AsJson, Jobs
from dig.errors import file_errors

if TYPE_CHECKING:
    from dig.lab.experiment.markdown_table import Table

bench = typer.Typer(
    help="Make and score runs whose failure has a known cause. (Its speed: `make bench`.)",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(bench, name="bench")

Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Only faults of this kind; repeatable. A kind of your own is named as MODULE:OBJECT, "
        "since no code is run because a file names it.",
    ),
]
Set = Annotated[Path, typer.Argument(metavar="DIR", help="A set, as `digmon bench make` makes it.")]


@bench.command()
def make(
    out: Annotated[Path, typer.Option(help="The directory of the set; it must be empty or new.")],
    seed: Annotated[int, typer.Option(help="The same seed makes the same bytes.")] = 1,
    count: Annotated[int, typer.Option(min=1, help="How many instances.")] = 500,
    salt: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="A secret without which nobody can play the held-out runs again; by default drawn "
            "anew. The same seed and salt make the same bytes.",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE:OBJECT", help="A kind of fault of your own, instead of ours."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Make it of failing runs that were made elsewhere: a folder for each, with its "
            "trace, twin and label.json (agent, kind, activation, t).",
        ),
    ] = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Make a set of runs with faults, twins and labels.

    It takes minutes, and is not there before all of it is: Ctrl-C leaves nothing.
    """
    from secrets import token_hex

    from dig.lab.benchmark.brought import bring_set
    from dig.lab.benchmark.candidates import Recipe
    from dig.lab.benchmark.storing import make_set

    recipe = Recipe(
        seed=seed,
        count=count,
        # Not from the seed, which is public: whoever has it could play held-out runs again.
        salt=token_hex(16) if salt is None else salt,
        foreign=tuple(kind or ()),
    )
    with progress_shown("interrupted; nothing was kept") as progress:
        if source is not None:
            count = len(bring_set(out, source, progress).instances)
        else:
            count = len(make_set(out, recipe, jobs=_jobs(jobs), progress=progress).instances)
    print_result(
        as_json,
        lambda: {"instances": count, "directory": str(out)},
        lambda: [f"{counted(count, 'instance')} in {out}; {out / 'CARD.md'} tells more"],
    )


@bench.command()
def schema() -> None:
    """Print the JSON schema of answers."""
    from dig.lab.benchmark.answer_file import Answers

    print(json.dumps(Answers.model_json_schema(), indent=2))


@bench.command(cls=naming(attributors="dig.lab.benchmark.attributing:ATTRIBUTORS"))
def attribute(
    name: Annotated[str, typer.Argument(help="{attributors}, or your own as MODULE:OBJECT.")],
    path: Set,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the answers go.")],
    structure_only: Annotated[
        bool, typer.Option("--structure-only", help="Give it the held-out traces without contents.")
    ] = False,
) -> None:
    """Let an attributor name the causes of each run of a set.

    Your own is a function of a dig.diagnosis.Case that returns a
    dig.lab.benchmark.answer_file.Answer, or candidates of dig.diagnosis.
    """
    from dig.lab.benchmark.attributing import attribute_all
    from dig.lab.benchmark.instances import FaultSet

    with progress_shown() as progress:
        answers = attribute_all(name, FaultSet.open(path), progress, structure_only=structure_only)
    write_text(output, answers.text())
    print(f"{counted(len(answers.answers), 'answer')} in {output}")


@bench.command()
def score(
    answers: Annotated[Path, typer.Argument(help="A file of answers; see `digmon bench schema`.")],
    path: Set,
    shuffle: Annotated[
        int | None,
        typer.Option(metavar="SEED", help="Exchange labels between runs first: what chance gives."),
    ] = None,
    structure_only: Annotated[
        bool,
        typer.Option("--structure-only", help="The answers are about traces without contents."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score answers about causes and the way to the outcome."""
    from dig.lab.benchmark.answer_file import read_answers
    from dig.lab.benchmark.instances import FaultSet
    from dig.lab.benchmark.scores_answers import score

    scores = score(
        read_answers(answers), FaultSet.open(path), shuffle, structure_only=structure_only
    )
    _show(scores.tables(), scores.to_json(), as_json)


@bench.command()
def detectors(path: Set, as_json: AsJson = False) -> None:
    """Score detectors: recall, delay and false alarms."""
    from dig.lab.benchmark.instances import FaultSet
    from dig.lab.benchmark.scores_detectors import score_detectors

    by_part = score_detectors(FaultSet.open(path))
    tables = [table for among, scores in by_part.items() for table in scores.tables(among)]
    _show(tables, {among: scores.to_json() for among, scores in by_part.items()}, as_json)


@bench.command()
def healing(path: Set, kinds: Kinds = None, jobs: Jobs = None, as_json: AsJson = False) -> None:
    """Score healing and its rivals: which failures they save."""
    from dig.lab.benchmark.instances import FaultSet
    from dig.lab.benchmark.scores_healing import score_healing

    with progress_shown() as progress:
        scores = score_healing(
            FaultSet.open(path), jobs=_jobs(jobs), kinds=kinds or (), progress=progress
        )
    _show(scores.tables(), scores.to_json(), as_json)


@bench.command(name="try")
def try_set(
    path: Set,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the verdicts go, as JSON.")],
    count: Annotated[int | None, typer.Option(min=1, help="How many runs at most.")] = None,
    kinds: Kinds = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Score verdicts of experiments against known causes."""
    from dig.lab.benchmark.instances import FaultSet
    from dig.lab.benchmark.trying import score_trials

    with progress_shown() as progress:
        trials = score_trials(
            FaultSet.open(path), jobs=_jobs(jobs), count=count, kinds=kinds or (),
            progress=progress,
        )  # fmt: skip
    write_text(output, f"{json.dumps(trials.to_json(), indent=1)}\n")
    _show([trials.table()], trials.to_json(), as_json)


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole, or not at all."""
    # Imported late, like all that commands need: `digmon --help` must stay fast.
    from dig.traces.journal.durable_files import write_output

    with file_errors(path, "written"):
        write_output(path, text.encode())


def _jobs(jobs: int | None) -> int:
    # `cpu_count` is None on systems that do not tell.
    return jobs or os.cpu_count() or 1


def _show(tables: "list[Table]", body: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(body, indent=1))
    else:
        sys.stdout.write("\n".join(table.markdown() for table in tables))
