"""`digmon why` and `try`: why a run failed, and whether a change would have helped."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dig._util.files import read_json
from dig._util.text import one_line
from dig.errors import DigError, SettingsError

from .app import INTERRUPTED, app, naming, warn
from .conversations import ConversationOptions, text_of
from .fork import ChangeOptions
from .options import AsJson, FaultKinds, Further, find_run, further, group_options
from .run_options import ModelOptions
from .run_resume import disturbance

if TYPE_CHECKING:
    from dig.diagnosis.stages.pipeline import ModelMethod
    from dig.diagnosis.suspects import Asking
    from dig.diagnosis.trials.replays import Trying
    from dig.runtime.llm import ModelSettings
    from dig.show.document import Diagnosis

Good = Annotated[
    str,
    typer.Option(
        metavar="EXPR",
        help="When a run is good: 'score.rmse<=250 and findings.ET==0' (besides the default), "
        "`none`, or a function of your own, `module:function`.",
    ),
]
ATTRIBUTION = 6
"""The number of requests by which a model says which agent and step."""

Repeat = Annotated[int, typer.Option(min=1, help="How many replays of each change are to count.")]


@dataclass(frozen=True)
class HelpOptions(ModelOptions):
    """The language model as a helper: proposes changes, and judges notes."""

    model: Annotated[
        str | None,
        typer.Option(
            help="A language model: it says which agent and step, and with --try proposes changes "
            "and judges what came of notes. Its server is sent what is explained."
        ),
    ] = None
    same_model: Annotated[
        bool,
        typer.Option(
            "--same-model", help="The run's own team goes on, if --model and --base-url name its "
            "model again."
        ),
    ] = False  # fmt: skip
    expected: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT|@FILE",
            help="The right answer: with --model, progress is judged by it. No agent is told.",
        ),
    ] = None

    def settings(self) -> "ModelSettings | None":
        """Return the settings of the model; ``None``: no model is asked.

        Raises:
            SettingsError: An option is wrong, or needs a model and none is named.
        """
        # --max-usd is a bound of replays, too, and then needs no model here.
        values = replace(self, max_usd=self.max_usd if self.model else None).model_values()
        if not values:
            alone = "--same-model" if self.same_model else "--expected" if self.expected else ""
            if alone:
                raise SettingsError(f"{alone} is about a language model; name it with --model")
            return None
        from dig.runtime.llm import ModelSettings  # slow to import

        settings = ModelSettings(**values)
        settings.key()
        return settings

    def of_diagnosis(
        self, method: "ModelMethod | None" = None, *, is_tried: bool = True
    ) -> dict[str, Any]:
        """The arguments of `diagnose` about the model.

        Args:
            method: The way in which it names candidates; ``None``: it does not.
            is_tried: Whether there are experiments with which it helps.

        Raises:
            SettingsError: An option is wrong, or needs a model and none is named.
        """
        settings = self.settings()
        if settings is None:
            return {}
        from dig.runtime.llm import Model  # slow to import

        if self.expected == "from-file":
            raise SettingsError("a run has no right answer in its file; give it as --expected TEXT")
        model = Model(settings)
        arguments: dict[str, Any] = {"expected": text_of(self.expected)}
        if method is not None:
            arguments["method"] = replace(method, spending=model.spending)
        return {**arguments, "model": model} if is_tried else arguments


@dataclass(frozen=True)
class TryingOptions:
    """Options of experiments."""

    repeat: Repeat = 3
    team: Annotated[
        str | None,
        typer.Option(help="The team that goes on: `module:team`; else simulated agents."),
    ] = None
    task: Annotated[
        str | None,
        typer.Option(
            help="The task of the run, if it is one of your own; of a conversation: its text."
        ),
    ] = None
    entry: Annotated[
        str | None,
        typer.Option(help="Runs a wrapped team of plain callables again: `module:function`."),
    ] = None
    max_replays: Annotated[
        int | None, typer.Option(min=1, help="How many replays may be made; by default 60.")
    ] = None
    max_s: Annotated[float, typer.Option(help="Seconds that experiments may take.")] = 600.0
    max_usd: Annotated[
        float | None, typer.Option(help="US dollars that replays with models may cost.")
    ] = None
    jobs: Annotated[
        int, typer.Option(min=1, help="How many processes work at once; the answer is the same.")
    ] = 1
    runs: Annotated[
        Path | None, typer.Option(help="Where the forks lie; by default beside the run, in why/.")
    ] = None
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Make forks again that are there already.")
    ] = False
    detector: Further = None
    kind: FaultKinds = None

    def trying(self, run: Path, helping: HelpOptions, **more: Any) -> "Trying":
        """Return the settings of experiments on a run, with the run's faults.

        Args:
            run: The run.
            helping: The model that helps.
            more: Further attributes of `Trying`.

        Raises:
            SettingsError: Models are asked, which may cost money, and there is no budget.
        """
        from dig.diagnosis.trials.replays import TrialBudget, Trying

        trying = Trying(
            repeat=self.repeat, jobs=self.jobs, runs=self.runs, team=self.team, task=self.task,
            entry=self.entry, detectors=further(self.detector),
            disturb=disturbance(run, self.kind), is_fresh=self.fresh,
            budget=TrialBudget(self.max_replays or 60, self.max_s, self.max_usd),
            same_model=helping.settings() if helping.same_model else None, **more,
        )  # fmt: skip
        if any(value is not None for value in (self.team, self.task, helping.model)):
            self._allow(run, trying, helping)
        return trying

    def _allow(self, run: Path, trying: "Trying", helping: HelpOptions) -> None:
        """Ask before money is spent; where nobody can be asked, a budget must be given."""
        from dig.diagnosis.goal import Goal
        from dig.diagnosis.trials.replays import read_source

        names = trying.replayer(run, Goal.parse("default")).manner.models
        most = trying.budget.replays or 0
        # An upper bound: each replay may ask for every activation of the run.
        calls = most * len(read_source(run, trying.detectors).run.activations) if names else 0
        if helping.model is not None:
            names = (*names, helping.model)
            calls += ATTRIBUTION + trying.tries + most * (2 if helping.expected is not None else 1)
        if not names:
            return
        model = ", ".join(dict.fromkeys(names))
        # The question goes to stderr: stdout may be a file or a pipe to another program.
        if sys.stdin.isatty() and sys.stderr.isatty():
            question = f"this asks {one_line(model, 80)} about {calls:,} times; go on?"
            typer.confirm(question, abort=True, err=True)
        elif self.max_usd is None and self.max_replays is None:
            raise SettingsError(
                f"this asks {one_line(model, 80)} about {calls:,} times, which may cost money: "
                "say how much it may be, with --max-usd or --max-replays"
            )


@dataclass(frozen=True)
class AskingOptions:
    """The suspects to ask, and the knowledge for signs."""

    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="The method that names candidates, agents that may be at fault: {suspects}, or "
            "your own as MODULE:OBJECT; repeatable.",
        ),
    ] = None
    top: Annotated[int, typer.Option(min=1, help="How many candidates are listed.")] = 10
    peers: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Good runs of the same sort: what they do is usual."),
    ] = None
    accounting: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:OBJECT",
            help="Says which parts of the task a payload is about, if the task does not.",
        ),
    ] = None

    @property
    def needs_run(self) -> bool:
        """Whether an option for recorded runs alone is given."""
        suspects = {*(self.by or ())} - {"attribution"}
        return bool(suspects) or self.peers is not None or self.accounting is not None

    def asking(self) -> "Asking":
        """The same for `diagnose`."""
        from dig.diagnosis.suspects import Asking

        usual = Asking()
        return Asking(tuple(self.by or usual.by), self.top, self.peers, self.accounting)


Sources = Annotated[
    list[Path],
    typer.Argument(
        callback=find_run, metavar="SOURCE...", help="Runs, traces, conversations; only read."
    ),
]


@app.command(cls=naming(suspects="dig.diagnosis.suspects:SUSPECTS"))
@group_options
def why(
    sources: Sources = [],  # noqa: B006 (read by typer alone)
    good: Good = "default",
    try_: Annotated[
        bool, typer.Option("--try", help="Try changes of the run, and say what would have helped.")
    ] = False,
    tries: Annotated[
        int, typer.Option(min=0, help="With --try: how many changes by rules, besides seats.")
    ] = 5,
    per_attempt: Annotated[
        int, typer.Option(min=1, help="With --try: candidates of each attempt that come first.")
    ] = 2,
    asked: AskingOptions = AskingOptions(),
    options: TryingOptions = TryingOptions(),
    helping: HelpOptions = HelpOptions(),
    conversation: ConversationOptions = ConversationOptions(),  # noqa: B008 (frozen)
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of the document.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Explain why a run or a conversation failed.

    It names the agent and the step, and how the failure went on from there. With --try it
    continues the run with one change several times, beside continuations without it.
    Exit status 0 if every run is good, 1 if one is not or is a conversation, 2 if one cannot be
    read, 130 interrupted.
    """
    from dig.diagnosis.diagnosing import diagnose
    from dig.diagnosis.goal import Goal
    from dig.show.document import Diagnosis

    if schema:
        print(json.dumps(Diagnosis.model_json_schema(mode="serialization"), indent=2))
        return
    _check_sources(sources, conversation.report)
    goal, asking, status = Goal.parse(good), asked.asking(), 0
    for source in sources:
        try:
            needs_run = try_ or good not in ("default", "none") or asked.needs_run
            if conversation.explain(
                source, options.task, asked.top, as_json=as_json, needs_run=needs_run
            ):
                status = max(status, 1)
                continue
            method = conversation.chosen(has_other_use=try_)
            helper = helping.of_diagnosis(method, is_tried=try_)
            more = {"tries": tries, "per_attempt": per_attempt}
            trying = options.trying(source, helping, **more) if try_ else None
            prepared = partial(diagnose, trying=trying, asking=asking, has_graph=conversation.graph)
            explain = partial(prepared, source, goal, **helper)
            diagnosis = _explain(explain, source, as_json, options, conversation.report)
            status = max(status, 0 if diagnosis.goal.good else 1)
        except DigError as error:
            warn(error)
            status = 2
    raise typer.Exit(status)


@app.command(name="try")
@group_options
def try_run(
    run: Annotated[
        Path,
        typer.Argument(
            callback=find_run, metavar="RUN", help="A run directory or trace; only read."
        ),
    ],
    changes: ChangeOptions = ChangeOptions(),  # noqa: B008 (frozen, as all groups)
    hypotheses: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file of JSON: a list of lists of interventions."),
    ] = None,
    good: Good = "default",
    no_control: Annotated[
        bool, typer.Option("--no-control", help="Make no replays without the change.")
    ] = False,
    options: TryingOptions = TryingOptions(),
    helping: HelpOptions = HelpOptions(),
    as_json: AsJson = False,
) -> None:
    """Try a change of a run: would the change have helped?

    Several replays with the change stand beside replays without it. Several changes in one call
    are made together. Exit status 0 if the change is validated, 1 if it is not, 2 if it was asked
    wrongly, 130 if it was interrupted.
    """
    from dig.diagnosis.diagnosing import try_changes
    from dig.diagnosis.goal import Goal

    rows, goal = changes.rows(run), Goal.parse(good)
    if bool(rows) == bool(hypotheses):
        raise SettingsError("name a change, such as --seat A=B --at T, or a file (--hypotheses)")
    tried = _read_hypotheses(hypotheses) if hypotheses else [rows]
    trying = options.trying(run, helping, has_controls=not no_control)
    explain = partial(try_changes, run, tried, goal, trying=trying, **helping.of_diagnosis())
    diagnosis = _explain(explain, run, as_json, options)
    raise typer.Exit(0 if diagnosis.fix is not None else 1)


def _check_sources(sources: Sequence[Path], report: Path | None) -> None:
    if not sources:
        raise SettingsError("name a run or a conversation: digmon why SOURCE")
    if report is not None and len(sources) > 1:
        raise SettingsError("--report is a page about one source; leave the others out")


def _explain(
    explain: "Callable[..., Diagnosis]", source: Path, as_json: bool, options: TryingOptions,
    report: Path | None = None,
) -> "Diagnosis":  # fmt: skip
    """Explain a run and print the diagnosis, after an interruption the results so far."""
    from dig.diagnosis.diagnosing import InterruptedDiagnosis

    most, count = options.max_replays or 60, 0

    def tell(line: str) -> None:
        nonlocal count
        count += 1
        print(f"{count}/{most} {one_line(line, 160)}", file=sys.stderr, flush=True)

    try:
        diagnosis = explain(tell=tell)
    except InterruptedDiagnosis as stopped:
        _print(stopped.diagnosis, source, as_json, options)
        raise typer.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:  # before the first replay: there is nothing to tell
        warn("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    _print(diagnosis, source, as_json, options)
    if report is not None:
        from dig.show.document import cause
        from dig.show.page.writing import write_report

        write_report(source, report, cause=cause(diagnosis))
    return diagnosis


def _print(diagnosis: "Diagnosis", source: Path, as_json: bool, options: TryingOptions) -> None:
    from dig.diagnosis.telling import tell
    from dig.diagnosis.trials.replays import read_source

    if as_json:
        print(diagnosis.to_json())
        return
    for line in tell(diagnosis, read_source(source, further(options.detector)), options.runs):
        print(line)
    # The same five answers as in every other place, after those of the diagnosis.
    from dig.detectors.answers import ANSWERS
    from dig.show.document import cause
    from dig.show.runs.summary import follow_run, stored_answers

    summary, follower = follow_run(source)
    answers = stored_answers(source, follower.so_far, summary.score, cause=cause(diagnosis))
    for label, text in answers.lines():
        if label in ANSWERS:
            print(f"{ANSWERS[label]}: {text}")


def _read_hypotheses(path: Path) -> Sequence[Sequence[Mapping[str, Any]]]:
    rows = read_json(path)
    is_list = isinstance(rows, list) and rows and all(isinstance(value, list) for value in rows)
    if not is_list or not all(isinstance(row, dict) for value in rows for row in value):
        raise SettingsError(f"{path}: hypotheses are a list of lists of interventions")
    return [*rows]
