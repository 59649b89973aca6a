"""`digmon investigate`: where an incident began, in a snapshot of a system."""

import json
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dig._util.files import read_file
from dig._util.text import safe_text
from dig.cli.app import INTERRUPTED, app, print_result, warn
from dig.cli.options import AsJson, ReportFile, group_options
from dig.cli.run_options import ModelOptions
from dig.errors import SettingsError, file_errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, MutableMapping

    from dig.lab.investigate.beliefs import JudgingPolicy, LocalJudgement
    from dig.lab.investigate.controller import Controller, Course, LedgerLine
    from dig.lab.investigate.investigation import Investigation
    from dig.lab.investigate.snapshot import Snapshot
    from dig.runtime.llm import Model


@dataclass(frozen=True)
class CourseOptions:
    """The course of an investigation, and the number of repetitions."""

    budget: Annotated[
        int | None, typer.Option(min=1, help="The most judgements; by default ten an entity.")
    ] = None
    window: Annotated[
        str | None,
        typer.Option(
            metavar="A..B",
            help="Only evidence between these times counts, in seconds of the snapshot's clock; by "
            "default from five minutes before the first alarm to five after the last.",
        ),
    ] = None
    no_messages: Annotated[
        bool, typer.Option("--no-messages", help="Tell no neighbour of a belief, to compare.")
    ] = False
    orders: Annotated[
        int, typer.Option(min=1, help="So many runs, each from alarms in another order.")
    ] = 1
    samples: Annotated[
        int, typer.Option(min=1, help="With --model: so many runs; the answer is that of most.")
    ] = 1
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Written after each step; if it is there, go on."),
    ] = None

    def courses(self, has_model: bool) -> "list[Course]":
        """The course of each run.

        Args:
            has_model: Whether a language model judges.

        Raises:
            SettingsError: The options contradict each other, or the window is none.
        """
        from dig.lab.investigate.controller import Course

        if self.checkpoint is not None and max(self.orders, self.samples) > 1:
            raise SettingsError("--checkpoint goes with one run; leave --orders and --samples out")
        if self.samples > 1 and (self.orders > 1 or not has_model):
            raise SettingsError("--samples needs --model, and goes without --orders")
        first = Course(_window(self.window), not self.no_messages, None, self.budget)
        # The first run keeps the order of time, as without the option.
        courses = [replace(first, order=seed) for seed in range(1, self.orders)]
        return [first, *courses] * self.samples


@app.command()
@group_options
def investigate(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="A snapshot; only read.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="DIR is data of another program: itbench, openrca2 or otlp.",
        ),
    ] = None,
    course: CourseOptions = CourseOptions(),
    score: Annotated[
        Path | None,
        typer.Option(metavar="ANSWERS", help="Score stored answers by DIR/truth.json instead."),
    ] = None,
    models: ModelOptions = ModelOptions(),  # noqa: B008 (frozen)
    report: ReportFile = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schemas of the answer and the files.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find where an incident in another system began.

    Local judgements, messages between neighbours, and a frontier of origins.

    Exit status 0 if an origin was found, 1 if the answer is a guess, 2 if it was asked wrongly, 130
    if it was interrupted.
    """
    from dig.lab.investigate import investigation, investigation_lines

    if schema:
        print(json.dumps(investigation.schema(), indent=2))
        return
    if directory is None:
        raise SettingsError("name a snapshot: digmon investigate DIR")
    snapshot = _read(directory, form)
    if score is not None:
        _score(snapshot, directory, score, as_json)
        return
    import anyio

    work = _Work(snapshot, course.courses(models.model is not None), models, course.checkpoint)
    try:
        answer = anyio.run(work.run)
    # A checkpoint is written after each step, so there is nothing to save here.
    except KeyboardInterrupt:
        hint = f"; go on with --checkpoint {course.checkpoint}" if course.checkpoint else ""
        warn(f"interrupted{hint}")
        raise typer.Exit(INTERRUPTED) from None
    # Names come from foreign files, and may hold control characters of a terminal.
    lines = [answer.to_json()] if as_json else map(safe_text, investigation_lines.tell(answer))
    print(*lines, sep="\n")
    if report is not None:
        from dig.lab.investigate.investigation_page import draw_investigation

        draw_investigation(answer, snapshot, report)
    raise typer.Exit(0 if answer.frontier else 1)


@dataclass(frozen=True)
class _Work:
    """All runs of a single command."""

    snapshot: "Snapshot"
    courses: "list[Course]"
    options: ModelOptions
    checkpoint: Path | None

    async def run(self) -> "Investigation":
        from dig.lab.investigate.investigation import majority

        answers = self._stored_answers()
        async with _open_model(self.options) as model:
            # In turn: with --orders, a later run reuses answers that were paid for.
            investigations = [
                await self._investigate_once(course, number, model, answers)
                for number, course in enumerate(self.courses)
            ]
        if len(investigations) == 1:
            return investigations[0]
        return majority(investigations, "orders" if model is None else "samples")

    async def _investigate_once(
        self, course: "Course", number: int, model: "Model | None",
        answers: "MutableMapping[str, LocalJudgement]",
    ) -> "Investigation":  # fmt: skip
        from dig.lab.investigate.controller import Controller
        from dig.lab.investigate.investigation import document, judge_all, resume
        from dig.lab.investigate.rules import ServiceRules

        policy: JudgingPolicy = ServiceRules()
        if model is not None:
            from dig.lab.investigate.model_policy import ModelPolicy

            policy = ModelPolicy(model, sample=number, answers=answers)
        controller = Controller(self.snapshot, course)
        if self.checkpoint is not None and self.checkpoint.exists():
            with file_errors(self.checkpoint, "read"):
                data = read_file(self.checkpoint)
            with _naming_place(self.checkpoint):
                controller = resume(self.snapshot, policy.name, course, data)
        await judge_all(controller, policy, partial(self._on_step, policy.name, answers))
        answer = document(controller, policy.name)
        cost = getattr(policy, "cost", None)
        return answer if cost is None else replace(answer, cost=replace(cost, steps=answer.steps))

    def _on_step(
        self, policy: str, answers: "MutableMapping[str, LocalJudgement]", controller: "Controller",
        line: "LedgerLine",
    ) -> None:  # fmt: skip
        from dig.lab.investigate.investigation import checkpoint_bytes, stored_answers
        from dig.lab.investigate.investigation_lines import step_line
        from dig.traces.journal.durable_files import write_output

        print(safe_text(step_line(controller, line)), file=sys.stderr, flush=True)
        if self.checkpoint is not None:
            with file_errors(self.checkpoint, "written"):
                # Answers before the checkpoint: a crash in between costs no paid answer.
                if answers:
                    write_output(_answers_path(self.checkpoint), stored_answers(answers))
                write_output(self.checkpoint, checkpoint_bytes(controller, policy))

    def _stored_answers(self) -> "dict[str, LocalJudgement]":
        """Read the model's answers beside the checkpoint."""
        from dig.lab.investigate.investigation import read_answers

        path = self.checkpoint and _answers_path(self.checkpoint)
        if path is None or not path.exists():
            return {}
        with file_errors(path, "read"):
            data = read_file(path)
        with _naming_place(path):
            return read_answers(data)


@contextmanager
def _naming_place(place: Path | str) -> Iterator[None]:
    """Put a place before error texts."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(f"{place}: {error}") from None


def _answers_path(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.answers.json")


@asynccontextmanager
async def _open_model(options: ModelOptions) -> "AsyncIterator[Model | None]":
    """Open the model of the options, if any, at temperature 0 by default."""
    values = options.model_values()
    if not values:
        yield None
        return
    from dig.runtime.llm import Model, ModelSettings

    # The same packet should get the same judgement; for --samples the user sets a temperature.
    settings = ModelSettings(**{"temperature": 0.0} | values)
    async with Model(settings) as model:
        model.tell = warn
        yield model


def _read(directory: Path, form: str | None) -> "Snapshot":
    from dig.lab.investigate.snapshot import Snapshot

    if form is None:
        return Snapshot.read(directory)
    from dig.lab.investigate.importing import import_snapshot

    return import_snapshot(form, directory)


def _window(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    # `float("")` fails as intended if there are no dots.
    first, dots, last = text.partition("..")
    try:
        return float(first), float(last if dots else "")
    except ValueError:
        raise SettingsError(f"--window is two numbers of seconds, A..B; got {text!r}") from None


def _score(snapshot: "Snapshot", directory: Path, answers: Path, as_json: bool) -> None:
    from dig.lab.investigate.scoring import score
    from dig.lab.investigate.snapshot import read_truth

    scores = score(snapshot, read_truth(directory), [*_answers(answers)])
    print_result(as_json, lambda: asdict(scores), scores.lines)


def _answers(path: Path) -> "Iterator[Investigation]":
    """Read the documents of a file, a document a line."""
    from dig.lab.investigate.investigation import Investigation

    with file_errors(path, "read"):
        lines = read_file(path).splitlines()
    for number, line in enumerate(lines, 1):
        if line.strip():
            with _naming_place(f"{path}:{number}"):
                yield Investigation.from_json(line)
