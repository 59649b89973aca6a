"""Verdicts held against known causes: whether experiments tell the culprit from the others.

Each run of a set is made once more, with its fault, and four hypotheses about it are tried: another
member in the culprit's seat from the first act of the fault on, the same for two agents that are
not at fault, and a change that changes nothing. Then `why --try` looks for the cause by itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dig.diagnosis.case import Case
from dig.diagnosis.diagnosing import diagnose
from dig.diagnosis.goal import Finished, Goal, Judgement, has_answer
from dig.diagnosis.interventions.recorded import decision_of
from dig.diagnosis.trials.arms import Trials, Tried
from dig.diagnosis.trials.replays import TrialBudget, Trying, read_fork, read_source
from dig.diagnosis.trials.seats import propose_seat
from dig.errors import SettingsError
from dig.faults.inject.faulty_team import FaultyTeam
from dig.graph.records import Emit, Leave
from dig.lab.experiment.markdown_table import Table, Value
from dig.lab.experiment.statistics import mean, share
from dig.lab.run_pair import lines, publish_records, without_policy
from dig.runtime.workers import Workers
from dig.show.document import Candidate, Diagnosis, Evidence, Hypothesis
from dig.tasks.run.execute import execute
from dig.tasks.run.methods import Arrangement
from dig.traces.run import RecordedActivation, RecordedRun

from .instances import FaultSet, Instance, Label, RunEnding, by_kind

PLACES = ("culprit", "nearest", "random", "null")
"""The agents tried: the culprit, the agent that acts nearest to it, any other, and no change."""
NEAR = 3
"""An onset is found if it is at most so many records from the first act of the fault."""


@dataclass(frozen=True)
class AsGoodAsTwin:
    """A test for measuring only: users have no twin.

    Attributes:
        rmse: The error of the twin's answer.
        patterns: The patterns that were raised in the twin.
    """

    rmse: float | None
    patterns: frozenset[str]

    @classmethod
    def of(cls, twin: RunEnding) -> AsGoodAsTwin:
        """Make the test of runs with the twin."""
        return cls(twin.rmse, frozenset(twin.raised))

    def __call__(self, run: Finished) -> Judgement:
        """Whether the answer is valid, not much worse than the twin's, with no further error."""
        answered = has_answer(run)
        score = run.score
        if not answered.good or score is None:
            return answered
        if self.rmse is not None and (score.rmse is None or score.rmse > 1.25 * self.rmse + 5):
            return Judgement(False, None, f"its error is {score.rmse}, the twin's {self.rmse}")
        more = sorted({finding.pattern for finding in run.unhealed} - self.patterns)
        if more:
            return Judgement(False, None, f"unhealed, and not in the twin: {', '.join(more)}")
        return Judgement(True, None, "as good as the twin")


@dataclass(frozen=True)
class TriedInstance:
    """The results of the experiments about a run.

    Attributes:
        instance: Its name.
        kind: The kind of its fault.
        culprit: The agent at fault.
        why_not: Why nothing was tried; empty: it was.
        verdicts: The verdict at each place, with its reason.
        flips: At each place, the counting replays that are good, and how many count.
        named: The agent that the search names first.
        fixed: Whether the search found a change that helps, and its kind.
        is_step: Whether a change that helps is one of a step, not of a seat.
        onset_off: Records from the first act of the fault to the onset that was found.
        no_return_off: Activations of the culprit after the first act from which it still helps.
        replays: The number of replays that the search made.
        until_validated: The number of replays when the first hypothesis was validated.
        cpu_s: The processor time that these took.
    """

    instance: str
    kind: str
    culprit: str
    why_not: str = ""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    flips: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    named: str | None = None
    fixed: str | None = None
    is_step: bool = False
    onset_off: int | None = None
    no_return_off: int | None = None
    replays: int = 0
    until_validated: int | None = None
    cpu_s: float = 0.0


@dataclass(frozen=True)
class TrialScores:
    """The experiments' result about the runs of a set."""

    tried: tuple[TriedInstance, ...]

    @property
    def judged(self) -> list[TriedInstance]:
        """The runs with experiments."""
        return [instance for instance in self.tried if not instance.why_not]

    def table(self) -> Table:
        """A row a kind of fault."""
        groups = [
            *by_kind(self.judged, lambda instance: instance.kind).items(),
            ("all", self.judged),
        ]
        return Table(
            "try",
            "Experiments on runs whose cause is known",
            ["fault", "runs", *_cells(())],
            [[kind, len(instances), *_cells(instances).values()] for kind, instances in groups],
            [
                "Culprit, nearest, random, null: the share of hypotheses that are validated: "
                "another member in the seat of the agent at fault (where it left: that it stays), "
                "of the agent that acts nearest to it, of any other one, and a change that "
                "changes nothing. Good replays: of those that count at the culprit's seat. "
                "Named: `why --try` names the agent at fault first. Step: it finds a change of a "
                "step, not of a seat. Onset: at most "
                f"{NEAR} records from the first act of the fault, where one was found. Until: the "
                "replays that were made when the first hypothesis was validated, where one was."
            ],
        )

    def to_json(self) -> dict[str, Any]:
        """The scores as plain JSON."""
        skipped = {
            instance.instance: instance.why_not for instance in self.tried if instance.why_not
        }
        return {
            "runs": len(self.judged),
            "skipped": skipped,
            "all": {
                column: asdict(cell.ours) if isinstance(cell, Value) and cell.ours else None
                for column, cell in _cells(self.judged).items()
            },
            "verdicts": {
                place: Counter(run.verdicts[place] for run in self.judged if place in run.verdicts)
                for place in PLACES
            },
            "instances": [asdict(instance) for instance in self.tried],
        }


def _cells(instances: Sequence[TriedInstance]) -> dict[str, Value]:
    validated = {
        place: [run.verdicts[place] == "validated" for run in instances if place in run.verdicts]
        for place in PLACES
    }
    verdicts = [verdict for instance in instances for verdict in instance.verdicts.values()]
    flips = [instance.flips["culprit"] for instance in instances if "culprit" in instance.flips]
    good = [1.0] * sum(g for g, _ in flips) + [0.0] * sum(n - g for g, n in flips)
    return {
        **{place: Value(share(flags)) for place, flags in validated.items()},
        "good replays": Value(share(good)),
        "not replayed": Value(share([v.endswith("cannot be replayed") for v in verdicts])),
        "named": Value(share([instance.named == instance.culprit for instance in instances])),
        "fixed": Value(share([instance.fixed is not None for instance in instances])),
        "step": Value(share([instance.is_step for instance in instances])),
        "onset": Value(share([abs(o) <= NEAR for o in _values(instances, "onset_off")])),
        "until": Value(mean(_values(instances, "until_validated"), 0)),
        "replays": Value(mean([instance.replays for instance in instances], 0)),
        "cpu s": Value(mean([instance.cpu_s for instance in instances], 0)),
    }


def _values(instances: Sequence[TriedInstance], field_name: str) -> list[int]:
    return [value for instance in instances if (value := getattr(instance, field_name)) is not None]


def score_trials(
    fault_set: FaultSet, *, jobs: int = 1, count: int | None = None, kinds: Collection[str] = (),
    progress: Callable[[str, int, int], None] = lambda stage, finished, total: None,
) -> TrialScores:  # fmt: skip
    """Try hypotheses about the runs of a set with known causes.

    Args:
        fault_set: The set; runs without labels are left out, those that were healed, and those with
            several faults.
        jobs: The number of processes.
        count: The number of runs at most; ``None``: all.
        kinds: The kinds of faults; none: all.
        progress: Takes a word for what is counted, how many are done, and how many there are.

    Raises:
        SettingsError: The set has no labels, or was made by another version.
    """
    chosen = [
        instance
        for instance in fault_set.labelled()
        if not (label := instance.label()).is_healed and len(label.faults) == 1
        and label.is_of(kinds)
    ][:count]  # fmt: skip
    do = partial(try_instance, foreign=tuple(kinds))
    with Workers(jobs, "the experiments", "try it with fewer --jobs") as workers:
        tried_instances = workers.all(
            do, chosen, lambda finished: progress("runs", finished, len(chosen))
        )
    return TrialScores(tuple(tried_instances))


def try_instance(instance: Instance, foreign: Collection[str] = ()) -> TriedInstance:
    """Try hypotheses about a run, and let the search find the cause.

    Args:
        instance: The run.
        foreign: Kinds that are in no catalogue, as `module:object`, that its fault may be of.
    """
    label = instance.label()
    faults = label.read_faults(foreign)
    culprit = faults[0].target
    started = TriedInstance(instance.entry.id, label.kind, culprit)
    if label.problems > 1:
        return replace(started, why_not="it has several problems at once, and a goal judges one")
    if not label.twin.valid:
        return replace(started, why_not="the run without the fault failed, too")
    goal = Goal("as good as the twin", AsGoodAsTwin.of(label.twin), is_own=True)
    with TemporaryDirectory() as folder:
        disturb = partial(FaultyTeam.of_arrangement, faults=[*label.decoys, *faults])
        run = _made_again(instance, label, disturb, Path(folder))
        # No budget: verdicts are measured here, not their cost.
        trying = Trying(disturb=disturb, budget=TrialBudget(None, None))
        source = read_source(run)
        if source.judged(goal).good:
            return replace(started, why_not="the run is as good as without the fault")
        case, first = source.case(goal), int(label.injections[0]["t"])
        with Trials(trying.replayer(run, goal)) as trials:
            tried = {
                place: trials.verify_again(trials.verify(hypothesis))
                for place, hypothesis in _hypotheses(case, trials, culprit, first)
            }
        trying = Trying(disturb=disturb, is_fresh=True)
        diagnosis = diagnose(run, goal, trying=trying)
    # The caches know the run by its directory, which is gone now.
    read_source.cache_clear()
    read_fork.cache_clear()
    return _with_search(started, tried, diagnosis, case, first)


def _made_again(
    instance: Instance, label: Label, disturb: Callable[[Arrangement], FaultyTeam], folder: Path
) -> Path:
    """Play the run again in a separate directory, to fork from.

    Args:
        instance: The run of the set.
        label: Its label.
        disturb: Puts its faults and decoys round the team.
        folder: The folder in which the directory is made.

    Raises:
        SettingsError: The run is not that of the set.
    """
    directory = execute(label.team_run, folder, disturb=disturb).directory
    records = [*map(without_policy, RecordedRun.read(directory, payloads=True).records)]
    original = lines(instance.records())
    if original not in (lines(records), lines(publish_records(records, instance.entry.id))):
        raise SettingsError(
            f"{instance.entry.id} came out differently: the set was made by another version"
        )
    return directory


def _hypotheses(
    case: Case, trials: Trials, culprit: str, first: int
) -> Iterator[tuple[str, Hypothesis]]:
    """The hypotheses about a run, by place.

    Args:
        case: The run.
        trials: Their experiments.
        culprit: The agent at fault.
        first: The first act of the fault.
    """
    team = trials.replayer.make_crew().team
    place = _acting(case.run, culprit, first)
    record = case.run.records[first]
    if isinstance(record, Leave):  # no decision of its own: what would have helped is known
        row = {"kind": "omit", "at": first, "t": first}
        yield "culprit", Hypothesis(id="h1", candidate="c1", interventions=(row,))
    elif place is not None:
        yield from _seat("culprit", case, team, place)
    of_others = [
        activation for activation in case.run.activations.values() if activation.agent != culprit
    ]
    if of_others:
        nearest = min(of_others, key=lambda activation: (abs(activation.t - first), activation.t))
        yield from _seat("nearest", case, team, nearest)
        # Seeded by run and fault, so that any process draws the same.
        draws = random.Random(f"{case.run.graph.run.run} {culprit} {first}")
        yield from _seat("random", case, team, draws.choice(of_others))
    # A failed activation has no decision that could be repeated.
    ended = [
        activation
        for activation in case.run.activations.values()
        if activation.end and not activation.has_failed and not _has_policy(case.run, activation)
    ]
    if ended:
        end = min(ended, key=lambda activation: abs(activation.t - first))
        yield "null", _nothing(case, end)


def _seat(
    place: str, case: Case, team: Mapping[str, object], activation: RecordedActivation
) -> Iterator[tuple[str, Hypothesis]]:
    candidate = Candidate(
        id="c1", agent=activation.agent, share=1.0, by=("truth",), t=activation.t,
        evidence=(Evidence(activation.t, "it is known"),), activation=activation.id,
    )  # fmt: skip
    proposal = propose_seat(case, team, candidate)
    if proposal is not None:
        yield place, proposal


def _has_policy(run: RecordedRun, activation: RecordedActivation) -> bool:
    """Whether a policy delivers the outputs of an activation; an edit would drop the delivery."""
    outputs = (run.records[event.t] for event in run.outputs(activation))
    return any(isinstance(record, Emit) and record.policy is not None for record in outputs)


def _nothing(case: Case, activation: RecordedActivation) -> Hypothesis:
    """Make a hypothesis with the unchanged decision: the null experiment."""
    assert activation.end is not None
    row = {
        "kind": "edit", "at": activation.end.t, "edit": decision_of(case.run, activation),
    }  # fmt: skip
    return Hypothesis(id="h1", candidate="c1", interventions=(row,))


def _acting(run: RecordedRun, agent: str, t: int) -> RecordedActivation | None:
    """The last activation of an agent with a start up to a record; else the agent's first."""
    mine = [activation for activation in run.activations.values() if activation.agent == agent]
    before = [activation for activation in mine if activation.t <= t]
    return before[-1] if before else (mine[0] if mine else None)


def _counting(trial: Tried) -> tuple[int, int]:
    """Good replays and all counting replays: only replays count where the unchanged run fails."""
    pairs = zip(trial.changed.good, trial.unchanged.good, strict=True)
    counting = [good for k, (good, control) in enumerate(pairs) if k == 0 or not control]
    return sum(counting), len(counting)


def _with_search(
    instance: TriedInstance,
    trials: Mapping[str, Tried],
    diagnosis: Diagnosis,
    case: Case,
    first: int,
) -> TriedInstance:
    """The result of a run.

    Args:
        instance: The run.
        trials: The results of the hypotheses.
        diagnosis: The findings of the search.
        case: The run, as it was recorded.
        first: The first act of the fault.
    """
    valid = [row for row in diagnosis.hypotheses if row.verdict == "validated"]
    seats = [row for row in valid if row.interventions[0]["kind"] == "seat"]
    onset = seats[0].onset if seats else None
    back = seats[0].no_return if seats else None
    starts = [a.t for a in case.run.activations.values() if a.agent == instance.culprit]
    acting = _acting(case.run, instance.culprit, first)
    fix = diagnosis.hypothesis(diagnosis.fix)
    return replace(
        instance,
        verdicts={place: t.verdict if t.reason is None else f"{t.verdict}: {t.reason}"
                  for place, t in trials.items()},
        flips={place: _counting(t) for place, t in trials.items()},
        named=diagnosis.answer.agent if diagnosis.answer else None,
        fixed=str(fix.interventions[0]["kind"]) if fix else None,
        is_step=any(row.interventions[0]["kind"] != "seat" for row in valid),
        onset_off=onset - first if onset is not None else None,
        no_return_off=(
            starts.index(back) - starts.index(acting.t)
            if back in starts and acting is not None else None
        ),
        replays=diagnosis.cost.replays, until_validated=diagnosis.cost.until_validated,
        cpu_s=diagnosis.cost.seconds,
    )  # fmt: skip
