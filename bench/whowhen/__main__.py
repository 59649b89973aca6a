"""`python -m bench.whowhen DIR`: answers about the cases of a benchmark of failed conversations."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dig._util.text import counted
from dig.cli.app import print_result, progress_shown, warn
from dig.cli.conversations import ConversationModelOptions
from dig.cli.options import AsJson, group_options
from dig.diagnosis.conversations.ranking import Weights, rank
from dig.diagnosis.conversations.reading import Conversation
from dig.diagnosis.stages.pipeline import ModelMethod
from dig.errors import DigError
from dig.lab.cli.bench import write_text

from . import conversation_benchmark as benchmark
from .conversation_benchmark import BlamedStep, Predictions

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

_OPTIONS = ConversationModelOptions()

OWN_CASES = "The weights were fitted to these very cases: this is no measure."


@dataclass(frozen=True)
class AnsweringOptions:
    """The source of answers about the cases of a benchmark."""

    by: Annotated[
        str, typer.Option(metavar="attribution|MODULE:OBJECT", help="What names agent and step.")
    ] = "attribution"
    folds: Annotated[
        int | None, typer.Option(min=2, help="Fit weights anew; no case is answered by its own.")
    ] = None
    seed: Annotated[int, typer.Option(help="Of the folds.")] = 1
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Use these weights; else the shipped ones.")
    ] = None

    def answers(
        self, method: ModelMethod | None, cases: Sequence[Conversation],
        labels: Mapping[str, BlamedStep],
    ) -> tuple[str, list[Predictions], list[str]]:  # fmt: skip
        """The name of the source, the answers of each repetition, and notes.

        Args:
            method: The way a model is asked; ``None``: none is.
            cases: The cases.
            labels: Their labels; only weights of other cases are fitted to them.

        Raises:
            SettingsError: An option is wrong, or numpy is not there.
        """
        with progress_shown() as tell:
            # A model that is named answers in place of any other source.
            if method is not None:
                answers = benchmark.attribute_cases(method, cases, tell)
                return method.title, [answers], [method.cost(len(cases))]
            if self.by != "attribution":
                return self.by, [benchmark.ask_cases(self.by, cases, tell)], []
            if self.folds is not None:
                runs = benchmark.cross_validated(cases, labels, self.folds, self.seed, tell)
                note = f"{self.folds} folds, {len(runs)} repetitions, choices inside the folds."
                return self.by, runs, [note]
            used = Weights.read(self.weights)
            answers = benchmark.attribute_cases(partial(rank, weights=used), cases, tell)
        # Weights name the labels that they were fitted to.
        is_own = used.data == benchmark.checksum(labels)
        return self.by, [answers], [OWN_CASES] if is_own else []


@app.command()
@group_options
def whowhen(
    path: Annotated[
        Path, typer.Argument(metavar="DIR", help="Its files N.json, or cases.json and labels.json.")
    ],
    answering: AnsweringOptions = AnsweringOptions(),
    fit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only fit weights to all cases, and write them."),
    ] = None,
    shuffle: Annotated[
        int | None,
        typer.Option(metavar="SEED", help="Exchange labels between cases: what chance gives."),
    ] = None,
    official: Annotated[
        bool, typer.Option("--official", help="Also by the benchmark's own evaluator.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the answers go, as JSON.")
    ] = None,
    options: ConversationModelOptions = _OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Score blamed agents and steps of Who&When conversations."""
    cases, labels = benchmark.load(path), benchmark.read_labels(path)
    if shuffle is not None:
        # Before fitting and answering, so that nothing sees the true labels.
        labels = benchmark.exchange_labels(cases, labels, shuffle)
    if fit is not None:
        weights = benchmark.train(cases, labels, answering.seed)
        write_text(fit, f"{weights.model_dump_json(indent=1)}\n")
        print(f"weights of {counted(len(cases), 'case')} in {fit}")
        return
    by, runs, notes = answering.answers(options.chosen(), cases, labels)
    if output is not None:
        rows = [{name: blamed and asdict(blamed) for name, blamed in run.items()} for run in runs]
        write_text(output, f"{json.dumps(rows)}\n")
    scores = benchmark.score_runs(by, cases, runs, labels, notes)
    print_result(
        as_json,
        lambda: scores.to_json(official=official),
        lambda: [table.markdown() for table in scores.tables(official=official)],
    )


def main() -> None:
    """Run the command; a named error ends in a sentence."""
    try:
        app(prog_name="python -m bench.whowhen")
    except DigError as error:
        warn(error)
        sys.exit(2)


if __name__ == "__main__":
    main()
