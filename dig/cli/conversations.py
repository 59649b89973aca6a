"""Options about the logs of conversations, and `digmon bench whowhen`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dig._util.text import counted
from dig.errors import SettingsError, file_errors

from .app import progress_shown
from .bench import bench, show_tables
from .options import AsJson

SourceLayout = StrEnum("SourceLayout", ["run", "trace", "whowhen", "messages", "conversation"])
"""run, trace: a recorded run. The others: the layouts of conversations."""


@dataclass(frozen=True)
class ConversationOptions:
    """How a conversation is read and explained."""

    layout_: Annotated[
        SourceLayout | None,
        typer.Option(
            "--as",
            help="What a source is, if it is not to be guessed: a recorded run, or a conversation "
            "(whowhen: a benchmark's file; messages: a list of messages; conversation: a trace "
            "made by `digmon import`).",
        ),
    ] = None
    graph: Annotated[
        bool, typer.Option("--graph", help="With --json: the graph of a conversation, too.")
    ] = False
    expected: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT|@FILE|from-file",
            help="The right answer of a conversation; without it, one in the file is not read.",
        ),
    ] = None

    def explain(self, source: Path, task: str | None, as_json: bool, *, needs_run: bool) -> bool:
        """Explain a source and print that, if it is a conversation; else return False.

        Args:
            source: A run directory, a trace, or the log of a conversation.
            task: The text of the conversation's task, if it is given.
            as_json: Whether the document is printed.
            needs_run: Whether an option is given that only a recorded run can have.

        Raises:
            TraceError: The file cannot be read, or holds no conversation.
            SettingsError: An option is wrong.
        """
        from dig.diagnosis.attribution.explaining import explain
        from dig.diagnosis.attribution.reading import LAYOUTS, layout_of
        from dig.diagnosis.telling import tell

        given = self.layout_ and self.layout_.value
        layout = next((one for one in LAYOUTS if one == given), None)
        layout = layout_of(source) if given is None else layout
        if layout is None:
            return False
        if needs_run:
            raise SettingsError(
                f"{source} is a conversation: --try and --good are about recorded runs"
            )
        found = explain(
            source, layout, task=task, expected=_text(self.expected), has_graph=self.graph
        )
        for line in [found.to_json()] if as_json else tell(found):
            print(line)
        return True


def _text(given: str | None) -> str | None:
    """A text, or the content of the file that is named after an `@`."""
    if given is None or not given.startswith("@"):
        return given
    path = Path(given[1:])
    with file_errors(path, "read"):
        return path.read_text(encoding="utf-8").strip()


@bench.command()
def whowhen(
    known: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Its files N.json, or cases.json and labels.json."),
    ],
    by: Annotated[
        str, typer.Option(metavar="attribution|MODULE:OBJECT", help="What names agent and step.")
    ] = "attribution",
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Fit weights anew, so that no case is answered by its own."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the folds.")] = 1,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Use these weights; else the shipped ones.")
    ] = None,
    fit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only fit weights to all cases, and write them."),
    ] = None,
    official: Annotated[
        bool, typer.Option("--official", help="Also by the benchmark's own evaluator.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the answers go, as JSON.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Name the agent and step at fault in the conversations of Who&When, and score that."""
    from dig.diagnosis.attribution import whowhen as benchmark
    from dig.diagnosis.attribution.ranking import Weights, rank
    from dig.traces.journal.files import write_output

    cases, labels = benchmark.load(known), benchmark.read_labels(known)
    if fit is not None:
        found = benchmark.trained(cases, labels, seed)
        with file_errors(fit, "written"):
            write_output(fit, f"{found.model_dump_json(indent=1)}\n".encode())
        print(f"weights of {counted(len(cases), 'case')} in {fit}")
        return
    notes: list[str] = []
    with progress_shown() as tell:
        if by != "attribution":
            runs = [benchmark.asked(by, cases, tell)]
        elif folds is not None:
            runs = benchmark.cross_validated(cases, labels, folds, seed, tell)
            notes.append(f"{folds} folds, {len(runs)} repetitions, choices inside the folds.")
        else:
            used = Weights.read(weights)
            runs = [{one.name: benchmark.blamed_step(rank(one, used)) for one in cases}]
            if used.data == benchmark.checksum(labels):
                notes.append("The weights were fitted to these very cases: this is no measure.")
    if output is not None:
        rows = [{name: said and asdict(said) for name, said in run.items()} for run in runs]
        with file_errors(output, "written"):
            write_output(output, f"{json.dumps(rows)}\n".encode())
    scores = benchmark.scored(by, cases, runs, labels, notes)
    show_tables(scores.tables(official=official), scores.to_json(official=official), as_json)
