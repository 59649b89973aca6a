"""From a recorded run to its diagnosis: `diagnose`; and one hypothesis verified: `verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from dig._util.text import counted
from dig.graph.records import End, Record
from dig.tasks.milestones import Evidence
from dig.tasks.run.fork import Crew

from .case import Case, RunSource
from .concepts import Attempt, Candidate, Failure, Hypothesis
from .document import (
    AnswerRow,
    ArmRows,
    AttemptRow,
    CandidateRow,
    ChangedArm,
    Confidence,
    CostRow,
    Diagnosis,
    EvidenceRow,
    FailureRow,
    GoalRow,
    HypothesisRow,
    SourceRow,
    StageRow,
    UnchangedArm,
)
from .experiments import Experiments, Findings, Place
from .goal import Goal, Judgement
from .interventions.kinds import in_words, read_interventions
from .suspects import EveryAgent, Suspects
from .trials.arms import TrialBudget, Trials, Tried
from .trials.replays import Disturb, Lab, read_source

TOP = 10
"""How many candidates are listed."""


@dataclass(frozen=True)
class Trying:
    """How experiments are made.

    Attributes:
        tries: How many changes that rules propose are tried.
        repeat: How many repeats of each are to count.
        per_attempt: How many changes are about one attempt.
        budget: How much all of it may cost.
        jobs: How many processes work at once; the document does not depend on it.
        runs: Where the forks lie; ``None``: beside the run.
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

    def lab(self, path: Path, goal: Goal) -> Lab:
        """What makes the replays of a run."""
        source = read_source(path, self.detectors)
        forks = source.forks if self.runs is None else self.runs
        return Lab(
            path, goal, forks, self.team, self.task, self.crew, self.detectors, self.disturb,
            self.is_fresh, self.entry,
        )  # fmt: skip


class InterruptedDiagnosis(KeyboardInterrupt):
    """Experiments were interrupted.

    Attributes:
        diagnosis: What was found by then.
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
    suspects: Suspects | None = None,
    tell: Tell = lambda line: None,
) -> Diagnosis:
    """Explain why a recorded run failed.

    Args:
        path: The run directory or trace; it is only read.
        goal: When it is good; ``None``: the default.
        trying: How experiments are made; ``None``: none is.
        suspects: Names the candidates; ``None``: all agents are.
        tell: Takes a line for each replay.

    Raises:
        TraceError: The trace cannot be read.
        SettingsError: The goal cannot be judged, or the team that goes on cannot be made.
        InterruptedDiagnosis: It was interrupted; it has what was found.
    """
    goal = goal or Goal.parse("default")
    report = _Report(read_source(path, trying.detectors if trying else ()), goal)
    if report.judged.good:
        return report.document()
    report.candidates = [*(suspects or EveryAgent()).candidates(report.case)]
    if trying is None:
        return report.document()
    lab = trying.lab(path, goal)

    def experiments(trials: Trials) -> Experiments:
        return Experiments(
            report.case, trials, report.candidates, lab.made_crew().team, tries=trying.tries,
            per_attempt=trying.per_attempt,
        )  # fmt: skip

    return _tried(report, lab, trying, experiments, Experiments.run, tell)


def try_changes(
    path: Path,
    changes: Sequence[Sequence[Mapping[str, Any]]],
    goal: Goal | None = None,
    *,
    trying: Trying | None = None,
    expects: Mapping[str, Any] | None = None,
    tell: Tell = lambda line: None,
) -> Diagnosis:
    """Try changes of a failed run that a person names.

    Args:
        path: The run directory or trace; it is only read.
        changes: For each hypothesis its interventions, as plain JSON.
        goal: When it is good; ``None``: the default.
        trying: How experiments are made.
        expects: What must happen in the forks; ``None``: nothing in particular.
        tell: Takes a line for each replay.

    Raises:
        TraceError: The trace cannot be read.
        SettingsError: A change is none, or the goal cannot be judged, or there is no team.
        InterruptedDiagnosis: It was interrupted; it has what was found.
    """
    goal, trying = goal or Goal.parse("default"), trying or Trying()
    report = _Report(read_source(path, trying.detectors), goal)
    hypotheses: list[Hypothesis] = []
    for number, rows in enumerate(changes, 1):
        read_interventions(rows)
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
    lab = trying.lab(path, goal)

    def experiments(trials: Trials) -> Experiments:
        return Experiments(report.case, trials, report.candidates, {})

    def run(made: Experiments) -> None:
        made.try_these(hypotheses)

    return _tried(report, lab, trying, experiments, run, tell)


def _tried(
    report: _Report, lab: Lab, trying: Trying, make: Callable[[Trials], Experiments],
    run: Callable[[Experiments], None], tell: Tell,
) -> Diagnosis:  # fmt: skip
    """The document with what experiments found.

    Args:
        report: Makes the document.
        lab: Makes the replays.
        trying: How experiments are made.
        make: Makes the experiments.
        run: Carries them out.
        tell: Takes a line for each replay.
    """
    with Trials(
        lab, repeat=trying.repeat, budget=trying.budget, jobs=trying.jobs, tell=tell,
        has_controls=trying.has_controls,
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
        trying: How experiments are made.

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


# --- the document ---


class _Report:
    """Makes a document of what is known about a run.

    Attributes:
        source: The run.
        goal: When it is good.
        judged: Whether it is.
        case: What suspects are given.
        candidates: The candidates, the likeliest first.
        findings: What experiments found; ``None``: there were none.
        trials: The experiments, with their costs.
        is_asked: Whether a person named what is tried.
    """

    def __init__(self, source: RunSource, goal: Goal) -> None:
        self.source, self.goal = source, goal
        self.judged: Judgement = source.judged(goal)
        self.case = source.case(goal)
        self.candidates: list[Candidate] = []
        self.findings: Findings | None = None
        self.trials: Trials | None = None
        self.is_asked = False

    def document(self) -> Diagnosis:
        """The document."""
        candidates = self._after_trials()
        findings = self.findings or Findings()
        fix = findings.fix
        answer = self._answer(candidates, fix)
        return Diagnosis(
            source=self._source(),
            goal=GoalRow(test=self.goal.text, **self.judged._asdict()),
            failures=tuple(map(_failure, self.case.failures)),
            attempts=tuple(map(_attempt, self.case.attempts)),
            method="structural",
            model=None,
            answer=answer,
            candidates=tuple(
                _candidate(number, one) for number, one in enumerate(candidates[:TOP], 1)
            ),
            chain=self._chain(answer),
            hypotheses=tuple(
                _hypothesis(one, findings.places.get(one.hypothesis.id, Place()))
                for one in findings.tried
            ),
            fix=fix.hypothesis.id if fix else None,
            confidence="verified" if fix else "suspected" if answer else "unknown",
            stages=self._stages(),
            cost=self._cost(),
            notes=tuple(self._notes(candidates)),
        )

    def _source(self) -> SourceRow:
        source = self.source
        return SourceRow(
            name=source.name, kind=source.kind, sha256=source.sha256,
            records=len(source.run.records), steps=len(source.run.activations),
        )  # fmt: skip

    def _after_trials(self) -> list[Candidate]:
        """The candidates: what helped first, what was refuted last."""
        if self.findings is None:
            return self.candidates
        helped = {one.hypothesis.candidate for one in self.findings.validated}
        by_candidate: dict[str, list[Tried]] = {}
        for one in self.findings.tried:
            by_candidate.setdefault(one.hypothesis.candidate, []).append(one)
        refuted = {
            name
            for name, tried in by_candidate.items()
            if all(one.verdict == "refuted" for one in tried)
        }
        furthest = {
            one.hypothesis.candidate for one in self.findings.tried if one.verdict == "partial"
        }
        fix = self.findings.fix
        first = fix.hypothesis.candidate if fix else None
        found = [_noted(one, by_candidate.get(one.id, ())) for one in self.candidates]
        found = [replace(one, status="origin") if one.id in helped else one for one in found]
        if fix is not None:
            found = [self._placed(one, fix) if one.id == first else one for one in found]
        return sorted(
            found,
            key=lambda one: (
                one.id != first, one.id not in helped, one.id not in furthest, one.id in refuted
            ),
        )  # fmt: skip

    def _placed(self, candidate: Candidate, fix: Tried) -> Candidate:
        """A candidate at the activation whose decision is changed by what helps, if one is."""
        row, run = fix.hypothesis.interventions[0], self.case.run
        record = run.records[row["at"]] if row["kind"] == "edit" else None
        name_ = row.get("activation") or getattr(record, "activation", None)
        if name_ is None:
            return candidate
        place = run.activations[name_]
        return replace(
            candidate, activation=name_, step=self.case.steps[name_], t=place.t,
            until=place.end.t if place.end else None,
        )  # fmt: skip

    def _answer(self, candidates: Sequence[Candidate], fix: Tried | None) -> AnswerRow | None:
        if not candidates or (fix is None and (self.is_asked or not self._is_suspected())):
            return None
        first = candidates[0]
        second = candidates[1].share if len(candidates) > 1 else 0.0
        confidence: Confidence = "medium" if first.share >= 2 * second else "low"
        if fix is not None:
            confidence = "high"
        reason = first.evidence[0].says
        if fix is not None:
            reason = f"The run succeeds if {_sentence(fix.hypothesis)}."
        return AnswerRow(
            agent=first.agent, step=first.step, t=first.t, activation=first.activation,
            mechanism=first.mechanism, confidence=confidence, reason=reason,
        )  # fmt: skip

    def _is_suspected(self) -> bool:
        """Whether the records speak against an agent at all."""
        shares = [one.share for one in self.candidates]
        return max(shares) > min(shares) or any(
            one.mechanism is not None for one in self.candidates
        )

    def _chain(self, answer: AnswerRow | None) -> tuple[int, ...]:
        """A path of steps from the answer's to the last one that goes back to it."""
        run, steps = self.case.run, self.case.steps
        if answer is None or answer.activation is None:
            return ()
        before: dict[str, str] = {}
        reached = [answer.activation]
        for activation in run.activations.values():
            generators = [run.events[event].by for event in activation.inputs]
            used = next(
                (by for by in reversed(generators) if by in before or by == reached[0]), None
            )
            if used is not None and activation.id != reached[0]:
                before[activation.id] = used
        last = next(reversed(before), answer.activation)
        path = [last]
        while path[-1] in before:
            path.append(before[path[-1]])
        return tuple(steps[one] for one in reversed(path))

    def _stages(self) -> tuple[StageRow, ...]:
        by = "person" if self.is_asked else "agents"
        rows = [StageRow(name=by, by="structural", status="done", why=None)]
        if self.findings is not None:
            rows.append(StageRow(name="try", by="replay", status="done", why=None))
        elif self.judged.good:
            rows.append(StageRow(name="try", by="replay", status="skipped", why="the run is good"))
        return tuple(rows)

    def _cost(self) -> CostRow:
        trials = self.trials
        if trials is None:
            return CostRow()
        costs = trials.costs
        return CostRow(
            replays=trials.replays, seconds=round(trials.cpu_s, 3),
            model_calls=int(costs["model_calls"]), input_tokens=int(costs["input_tokens"]),
            output_tokens=int(costs["output_tokens"]),
            usd=float(costs["cost_usd"]) if "cost_usd" in costs else None,
        )  # fmt: skip

    def _notes(self, candidates: Sequence[Candidate]) -> list[str]:
        found = [*self.source.finished().notes]
        if len(candidates) > TOP:
            found.append(f"{counted(len(candidates) - TOP, 'further candidate')} not listed")
        if self.findings is None or self.trials is None:
            return found
        manner = self.trials.manner
        if manner.is_deterministic:
            found.append("the team is deterministic: a repeat would be the same, so there is one")
        if not manner.is_paired:
            found.append(
                "the team draws its own random numbers: 3 of 3 good replays against 0 of 3 are "
                "p = .05"
            )
        if self.findings.once:
            found.append(
                f"{counted(self.findings.once, 'change')} tried once only, without success"
            )
        found += self.findings.notes
        found += [f"{one.hypothesis.id}: {one.why}" for one in self.findings.tried if one.why]
        return found


def _sentence(hypothesis: Hypothesis) -> str:
    return " and ".join(map(in_words, hypothesis.interventions))


def _noted(candidate: Candidate, tried: Sequence[Tried]) -> Candidate:
    """A candidate with what experiments say about it as further evidence."""
    shown = tuple(
        Evidence(one.at, f"tried: {one.verdict}, if {_sentence(one.hypothesis)}") for one in tried
    )
    return replace(candidate, evidence=(*candidate.evidence, *shown))


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


def _evidence(one: Evidence) -> EvidenceRow:
    return EvidenceRow(**asdict(one))


def _failure(one: Failure) -> FailureRow:
    return FailureRow(kind=one.kind, about=one.about, evidence=tuple(map(_evidence, one.evidence)))


def _attempt(one: Attempt) -> AttemptRow:
    return AttemptRow(**asdict(one))


def _candidate(rank: int, one: Candidate) -> CandidateRow:
    row = {**asdict(one), "evidence": tuple(map(_evidence, one.evidence))}
    return CandidateRow(rank=rank, **row)


def _hypothesis(one: Tried, place: Place) -> HypothesisRow:
    hypothesis, changed, unchanged = one.hypothesis, one.changed, one.unchanged
    return HypothesisRow(
        id=hypothesis.id, candidate=hypothesis.candidate, attempt=hypothesis.attempt,
        interventions=tuple(map(dict, hypothesis.interventions)),
        expects=dict(hypothesis.expects) if hypothesis.expects else None,
        verdict=one.verdict, reason=one.reason,
        arms=ArmRows(
            changed=ChangedArm(
                n=changed.n, good=changed.successes, fulfilled=sum(changed.fulfilled),
                progress=changed.progress, forks=changed.forks,
            ),
            unchanged=UnchangedArm(
                n=unchanged.n, good=unchanged.successes, progress=unchanged.progress,
                forks=unchanged.forks,
            ),
        ),
        p=one.p, onset=place.onset, no_return=place.no_return,
    )  # fmt: skip
