"""From a recorded run to its diagnosis: `diagnose`; and one hypothesis verified: `verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from dig.errors import SettingsError
from dig.graph.records import End, Record
from dig.show.document import Candidate, Diagnosis, Evidence, Hypothesis
from dig.tasks.run.fork import Crew
from dig.traces.replay.kinds import in_words, read_interventions

from .case import Case, RunSource
from .experiments import Experiments
from .goal import Goal
from .interventions.secrecy import AnswerGuard
from .reporting import DiagnosisReport
from .stages.traces import ModelSuspects
from .suspects import Asking, Suspects, Together, led_by_error, suspects_of
from .trials.arms import TrialBudget, Trials, Tried
from .trials.replays import Disturb, Lab, read_source

if TYPE_CHECKING:
    from dig.runtime.llm import Model, ModelSettings  # slow to import

    from .interventions.asking import ModelHelp
    from .stages.pipeline import ModelMethod


@dataclass(frozen=True)
class Trying:
    """The settings of experiments.

    Attributes:
        tries: The number of changes proposed by rules that are tried.
        repeat: The number of repeats of each that are to count.
        per_attempt: The number of changes about one attempt.
        budget: The bounds on the cost of all of it.
        jobs: The number of processes that work at once; the document does not depend on it.
        runs: The directory of the forks; ``None``: beside the run.
        team: The team that goes on, as `module:team`; ``None``: simulated agents, if the run had
            them.
        task: The task of the run, if it is not one of this package.
        crew: Makes the team that goes on, in place of a name.
        entry: For the run of a wrapped team of plain callables: what makes and runs that again, as
            `module:function`.
        detectors: The user's detectors, as `module:object`.
        disturb: Makes the disturbance that the run had, such as injected faults.
        is_fresh: Whether forks that are there already are made again.
        has_controls: Whether replays without the change are made.
        same_model: The settings of the model that the run's team asked, named again by the user:
            it goes on.
    """

    tries: int = 5
    repeat: int = 3
    per_attempt: int = 2
    budget: TrialBudget = field(default_factory=TrialBudget)
    jobs: int = 1
    runs: Path | None = None
    team: str | None = None
    task: str | None = None
    crew: Callable[[], Crew] | None = None
    detectors: tuple[str, ...] = ()
    disturb: Disturb | None = None
    is_fresh: bool = False
    has_controls: bool = True
    entry: str | None = None
    same_model: ModelSettings | None = None

    def lab(self, path: Path, goal: Goal) -> Lab:
        """The lab that makes the replays of a run.

        Raises:
            SettingsError: A link lies where the forks of the run belong.
        """
        source = read_source(path, self.detectors)
        if self.runs is None and source.forks.is_symlink():
            raise SettingsError(
                f"{source.forks} is a link, and no fork is written through it: remove the link, or "
                "name another folder for the forks with --runs"
            )
        forks = source.forks if self.runs is None else self.runs
        return Lab(
            path, goal, forks, self.team, self.task, self.crew, self.detectors, self.disturb,
            self.is_fresh, self.entry, self.same_model,
        )  # fmt: skip


class InterruptedDiagnosis(KeyboardInterrupt):
    """Experiments were interrupted.

    Attributes:
        diagnosis: The results up to then.
    """

    def __init__(self, diagnosis: Diagnosis) -> None:
        """Keep what was found."""
        super().__init__("interrupted")
        self.diagnosis = diagnosis


Tell = Callable[[str], None]


def diagnose(
    path: Path,
    goal: Goal | None = None,
    *,
    trying: Trying | None = None,
    asking: Asking | None = None,
    suspects: Suspects | None = None,
    method: ModelMethod | None = None,
    model: Model | None = None,
    expected: str | None = None,
    has_graph: bool = False,
    tell: Tell = lambda line: None,
) -> Diagnosis:
    """Explain why a recorded run failed.

    Args:
        path: The run directory or trace; it is only read.
        goal: When it is good; ``None``: the default.
        trying: The settings of experiments; ``None``: none is made.
        asking: The suspects that are asked, and their knowledge; ``None``: those that are usual.
        suspects: Names the candidates, in place of those that `asking` names.
        method: The way in which a model is asked as the suspect `attribution`; ``None``: none is.
        model: Proposes changes and judges whether notes were followed; ``None``: rules alone do.
        expected: The right answer, by which the model names milestones; no agent is told.
        has_graph: Whether the document has the hierarchical graph.
        tell: Takes a line for each replay.

    Raises:
        TraceError: The trace cannot be read.
        SettingsError: The goal cannot be judged, the team that goes on cannot be made, or a model
            is to answer as a suspect that is not asked.
        InterruptedDiagnosis: The user interrupted the work; the error has the results up to then.
    """
    goal, asking = goal or Goal.parse("default"), asking or Asking()
    report = DiagnosisReport(read_source(path, trying.detectors if trying else ()), goal, asking)
    if report.judged.good:
        report.candidates = led_by_error(report.case, ())
        return report.document()
    report.helper = helper = _helper(report.source, model, expected)
    if helper is not None:
        report.case = replace(report.case, attempts=helper.merged(report.case))
    asked = {"": suspects} if suspects else {one: suspects_of(one) for one in asking.by}
    by_model = _by_model(asked, method, expected)
    together = Together(tuple(asked.values()), names_all=trying is not None)
    report.candidates = [*together.candidates(report.case)]
    if suspects is None:
        report.candidates = led_by_error(report.case, report.candidates)
    report.attributed = by_model.found if by_model else None
    report.has_graph = has_graph
    if trying is None:
        return report.document()
    lab = trying.lab(path, goal)

    def experiments(trials: Trials) -> Experiments:
        return Experiments(
            report.case, trials, report.candidates, lab.made_crew().team, tries=trying.tries,
            per_attempt=trying.per_attempt, proposes=helper,
        )  # fmt: skip

    return _tried(report, lab, trying, experiments, Experiments.run, tell)


def _by_model(
    asked: dict[str, Suspects], method: ModelMethod | None, expected: str | None
) -> ModelSuspects | None:
    """The model as the suspect `attribution`, in place of the rules; ``None``: none is asked."""
    if method is None:
        return None
    if "attribution" not in asked:
        raise SettingsError(
            "a model answers as the suspect `attribution`: add --by attribution or, if it is to "
            "help with experiments alone, --method structural"
        )
    found = ModelSuspects(method, asked["attribution"].candidates, expected)
    asked["attribution"] = found
    return found


def _helper(source: RunSource, model: Model | None, expected: str | None) -> ModelHelp | None:
    if model is None:
        return None
    from .interventions.asking import ModelHelp

    return ModelHelp(model, guard=guard_of(source, expected), expected=expected)


def guard_of(source: RunSource, expected: str | None = None) -> AnswerGuard:
    """The words that no agent may be told in an experiment on a run.

    Args:
        source: The run.
        expected: The right answer, if the user gave it.
    """
    target = getattr(source.task, "target", tuple)
    return AnswerGuard(expected, target())


def try_changes(
    path: Path,
    changes: Sequence[Sequence[Mapping[str, Any]]],
    goal: Goal | None = None,
    *,
    trying: Trying | None = None,
    expects: Mapping[str, Any] | None = None,
    model: Model | None = None,
    expected: str | None = None,
    tell: Tell = lambda line: None,
) -> Diagnosis:
    """Try changes of a failed run that a person names.

    Args:
        path: The run directory or trace; it is only read.
        changes: For each hypothesis its interventions, as plain JSON.
        goal: When it is good; ``None``: the default.
        trying: The settings of experiments.
        expects: The acts that must happen in the forks; ``None``: nothing in particular.
        model: Judges whether notes were followed; ``None``: records alone do.
        expected: The right answer, by which the model names milestones; no agent is told.
        tell: Takes a line for each replay.

    Raises:
        TraceError: The trace cannot be read.
        SettingsError: A change is none, or the goal cannot be judged, or there is no team.
        InterruptedDiagnosis: The user interrupted the work; the error has the results up to then.
    """
    goal, trying = goal or Goal.parse("default"), trying or Trying()
    report = DiagnosisReport(read_source(path, trying.detectors), goal)
    hypotheses: list[Hypothesis] = []
    guard = guard_of(report.source, expected)
    for number, rows in enumerate(changes, 1):
        read_interventions(rows)
        _refuse(guard, rows)
        candidate = _of_person(report.case, rows[0], f"c{number}", 1 / len(changes))
        report.candidates.append(candidate)
        attempt = report.case.attempt_of(candidate.activation)
        hypotheses.append(
            Hypothesis(
                id=f"h{number}",
                candidate=candidate.id,
                interventions=tuple(rows),
                attempt=attempt,
                expects=expects,
            )
        )
    report.is_asked = True
    if report.judged.good:
        return report.document()
    report.helper = _helper(report.source, model, expected)
    lab = trying.lab(path, goal)

    def experiments(trials: Trials) -> Experiments:
        return Experiments(report.case, trials, report.candidates, {})

    def run(made: Experiments) -> None:
        made.try_these(hypotheses)

    return _tried(report, lab, trying, experiments, run, tell)


def _refuse(guard: AnswerGuard, rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse interventions that would tell agents the right answer."""
    for row in rows:
        if refusal := guard.refusal(row):
            raise SettingsError(
                f"{refusal}: a run that is told the answer says nothing about why it failed"
            )


def _tried(
    report: DiagnosisReport, lab: Lab, trying: Trying, make: Callable[[Trials], Experiments],
    run: Callable[[Experiments], None], tell: Tell,
) -> Diagnosis:  # fmt: skip
    """The document with what experiments found.

    Args:
        report: Makes the document.
        lab: Makes the replays.
        trying: The settings of experiments.
        make: Makes the experiments.
        run: Carries them out.
        tell: Takes a line for each replay.
    """
    with Trials(
        lab, repeat=trying.repeat, budget=trying.budget, jobs=trying.jobs, tell=tell,
        has_controls=trying.has_controls, helper=report.helper,
    ) as trials:  # fmt: skip
        made = make(trials)
        report.trials, report.findings = trials, made.findings
        try:
            run(made)
        except KeyboardInterrupt:
            made.findings.notes.append("the experiments were interrupted")
            raise InterruptedDiagnosis(report.document()) from None
    return report.document()


async def diagnose_async(path: Path, goal: Goal | None = None, **more: Any) -> Diagnosis:
    """`diagnose` within a running loop, in a thread of its own."""
    found: Diagnosis = await anyio.to_thread.run_sync(partial(diagnose, path, goal, **more))
    return found


async def verify(
    path: Path, hypothesis: Hypothesis, goal: Goal | None = None, trying: Trying | None = None
) -> Tried:
    """Verify one hypothesis about a run, in a thread of its own.

    Args:
        path: The run directory or trace; it is only read.
        hypothesis: The hypothesis.
        goal: When a run is good; ``None``: the default.
        trying: The settings of experiments.

    Raises:
        TraceError: The trace cannot be read.
        SettingsError: An intervention is none, or there is no team that goes on.
    """
    chosen = trying or Trying()
    read_interventions(hypothesis.interventions)

    def run() -> Tried:
        lab = chosen.lab(path, goal or Goal.parse("default"))
        with Trials(lab, repeat=chosen.repeat, budget=chosen.budget, jobs=chosen.jobs) as trials:
            return trials.verify_again(trials.verify(hypothesis))

    return await anyio.to_thread.run_sync(run)


def _of_person(case: Case, row: Mapping[str, Any], name_: str, share: float) -> Candidate:
    """The place that a person names by a change."""
    run, at = case.run, min(int(row["at"]), len(case.run.records) - 1)
    about = row.get("agent") or row.get("activation") or row.get("event")
    about = about or (row.get("events") or [None])[0]
    record = run.records[min(int(row.get("t", at)), len(run.records) - 1)]
    agent = (run.agent_of(about) if about else None) or _agent_at(case, record) or "the team"
    activation = row.get("activation") or getattr(record, "activation", None)
    if activation not in run.activations or run.activations[activation].agent != agent:
        activation = None
    says = f"a person asked what happens if {in_words(row)}"
    return Candidate(
        id=name_, agent=agent, share=share, by=("person",), t=at, activation=activation,
        step=case.steps.get(activation or ""), evidence=(Evidence(at, says),),
        event=row.get("event"),
    )  # fmt: skip


def _agent_at(case: Case, record: Record) -> str | None:
    """The agent that a record is about."""
    if isinstance(record, End):
        return case.run.activations[record.activation].agent
    agent = getattr(record, "agent", None)
    event = getattr(record, "event", None)
    return agent or (case.run.agent_of(event) if event else None)
