"""From a recorded run to a diagnosis: `diagnose`, `try_changes`, `verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from dig.errors import SettingsError
from dig.graph.records import End, Record
from dig.show.document import Candidate, Diagnosis, Evidence, Hypothesis
from dig.traces.replay.kinds import in_words, read_interventions

from .case import Case, RunSource
from .experiments import Experiments
from .goal import Goal
from .interventions.secrecy import AnswerGuard
from .reporting import DiagnosisReport
from .suspects import Asking, Suspects, Together, blame_error_first, load_suspects
from .trials.arms import Trials, Tried
from .trials.replays import Trying, read_source

if TYPE_CHECKING:
    from dig.runtime.llm import Model  # slow to import

    from .interventions.model_proposals import ModelHelp
    from .stages.pipeline import ModelMethod
    from .stages.traces import ModelSuspects


class InterruptedDiagnosis(KeyboardInterrupt):
    """Experiments were interrupted.

    Attributes:
        diagnosis: The results up to then.
    """

    def __init__(self, diagnosis: Diagnosis) -> None:
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
    if report.judgement.good:
        report.candidates = blame_error_first(report.case, ())
        return report.document()
    report.helper = helper = _helper(report.source, model, expected)
    if helper is not None:
        report.case = replace(report.case, attempts=helper.merge_attempts(report.case))
    by_name = {"": suspects} if suspects else {name: load_suspects(name) for name in asking.by}
    by_model = _replace_rules(by_name, method, expected) if method is not None else None
    together = Together(tuple(by_name.values()), names_all=trying is not None)
    report.candidates = [*together.candidates(report.case)]
    if suspects is None:
        report.candidates = blame_error_first(report.case, report.candidates)
    report.attribution = by_model.attribution if by_model else None
    report.has_graph = has_graph
    if trying is None:
        return report.document()
    replayer = trying.replayer(path, goal)
    with Trials(replayer, tell=tell, helper=helper) as trials:
        experiments = Experiments(
            report.case, trials, report.candidates, replayer.make_crew().team, tries=trying.tries,
            per_attempt=trying.per_attempt, proposes=helper,
        )  # fmt: skip
        return _run(report, trials, experiments, experiments.run)


def _replace_rules(
    by_name: dict[str, Suspects], method: ModelMethod, expected: str | None
) -> ModelSuspects:
    """Put a model in place of the suspect `attribution`; without an answer the rules stand."""
    from .stages.traces import ModelSuspects

    if "attribution" not in by_name:
        raise SettingsError(
            "a model answers as the suspect `attribution`: add --by attribution or, if it is to "
            "help with experiments alone, --method structural"
        )
    model = ModelSuspects(method, by_name["attribution"].candidates, expected)
    by_name["attribution"] = model
    return model


def _helper(source: RunSource, model: Model | None, expected: str | None) -> ModelHelp | None:
    if model is None:
        return None
    from .interventions.model_proposals import ModelHelp

    return ModelHelp(model, guard=guard_of(source, expected), expected=expected)


def guard_of(source: RunSource, expected: str | None = None) -> AnswerGuard:
    """Return the guard of the right answer in experiments on a run.

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
    """Try changes of a failed run, named by a person.

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
        for row in rows:
            if refusal := guard.refusal(row):
                raise SettingsError(
                    f"{refusal}: a run that is told the answer says nothing about why it failed"
                )
        candidate = _candidate_of(report.case, rows[0], f"c{number}", 1 / len(changes))
        report.candidates.append(candidate)
        attempt = report.case.attempt_of.get(candidate.activation)
        hypotheses.append(
            Hypothesis(
                id=f"h{number}", candidate=candidate.id, interventions=tuple(rows),
                attempt=attempt, expects=expects,
            )
        )  # fmt: skip
    report.is_by_person = True
    if report.judgement.good:
        return report.document()
    report.helper = _helper(report.source, model, expected)
    with Trials(trying.replayer(path, goal), tell=tell, helper=report.helper) as trials:
        experiments = Experiments(report.case, trials, report.candidates, {})
        return _run(report, trials, experiments, partial(experiments.try_these, hypotheses))


def _run(
    report: DiagnosisReport, trials: Trials, experiments: Experiments, run: Callable[[], None]
) -> Diagnosis:
    """Carry experiments out; returns the document with all findings.

    Raises:
        InterruptedDiagnosis: The user interrupted them.
    """
    report.trials, report.findings = trials, experiments.findings
    try:
        run()
    except KeyboardInterrupt:
        experiments.findings.notes.append("the experiments were interrupted")
        raise InterruptedDiagnosis(report.document()) from None
    return report.document()


async def diagnose_async(path: Path, goal: Goal | None = None, **more: Any) -> Diagnosis:
    """Diagnose a run within a running loop, in a separate thread."""
    diagnosis: Diagnosis = await anyio.to_thread.run_sync(partial(diagnose, path, goal, **more))
    return diagnosis


async def verify(
    path: Path, hypothesis: Hypothesis, goal: Goal | None = None, trying: Trying | None = None
) -> Tried:
    """Verify a hypothesis about a run, in a separate thread.

    Args:
        path: The run directory or trace; it is only read.
        hypothesis: The hypothesis.
        goal: When a run is good; ``None``: the default.
        trying: The settings of experiments.

    Raises:
        TraceError: The trace cannot be read.
        SettingsError: An intervention is none, or there is no team that goes on.
    """
    read_interventions(hypothesis.interventions)

    def run() -> Tried:
        replayer = (trying or Trying()).replayer(path, goal or Goal.parse("default"))
        with Trials(replayer) as trials:
            return trials.verify_again(trials.verify(hypothesis))

    return await anyio.to_thread.run_sync(run)


def _candidate_of(case: Case, row: Mapping[str, Any], name_: str, share: float) -> Candidate:
    """The place of a change named by a person."""
    run, at = case.run, min(int(row["at"]), len(case.run.records) - 1)
    about = row.get("agent") or row.get("activation") or row.get("event")
    about = about or (row.get("events") or [None])[0]
    record = run.records[min(int(row.get("t", at)), len(run.records) - 1)]
    agent = (run.agent_of(about) if about else None) or _agent_at(case, record) or "the team"
    activation = row.get("activation") or getattr(record, "activation", None)
    # The record may be another agent's: then it is no place of the one that the change is about.
    if activation not in run.activations or run.activations[activation].agent != agent:
        activation = None
    says = f"a person asked what happens if {in_words(row)}"
    return Candidate(
        id=name_, agent=agent, share=share, by=("person",), t=at, activation=activation,
        step=case.steps.get(activation or ""), evidence=(Evidence(at, says),),
        event=row.get("event"),
    )  # fmt: skip


def _agent_at(case: Case, record: Record) -> str | None:
    """The agent of a record."""
    if isinstance(record, End):
        return case.run.activations[record.activation].agent
    agent = getattr(record, "agent", None)
    event = getattr(record, "event", None)
    return agent or (case.run.agent_of(event) if event else None)
