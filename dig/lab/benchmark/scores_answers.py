"""Scores of answers about a set: compares each answer with the verified causal graph of the run.

The named causes have scores of their own, and so have the named steps from the causes to the
consequences. A step goes from one component to another: an agent, `task` or `outcome`. If the
predicted set and the true set are both empty, the score is 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from statistics import fmean
from types import MappingProxyType
from typing import Any, TypeVar

import networkx as nx

from dig._util.text import counted, cut, name
from dig.diagnosis.causes import CausalGraph
from dig.diagnosis.components import record_components
from dig.errors import SettingsError
from dig.lab.experiment.markdown_table import Table, Value
from dig.lab.experiment.statistics import Mean, as_json, share, spread
from dig.traces.run import RecordedRun

from .answer_file import Answer, Answers
from .attributing import FLOORS, answer, attributor, case_about
from .instances import TWIN, Entry, FaultSet, Instance, Label, by_kind
from .oracle import ORACLE, oracle

T = TypeVar("T")
_Cause = tuple[str, str]  # a component and the kind of its fault
_Way = tuple[str, str]  # a step from one component to another

FRONT: Mapping[str, str] = MappingProxyType(
    {
        "exact": "the causes, (component, kind), are exactly the true ones",
        "f1": "harmonic mean of their precision and recall",
        "agent": "the component that is named first is a true one",
        "step": "the activation is a true one, or the next to it",
        "edge_f1": "F1 of the steps between components",
        "evidence": "share of the evidence that exists and is about the component it is for",
        "innocents": "a decoy is named as a cause, of the runs that have decoys; 0 is best",
    }
)
"""The metrics of the front row; each goes from 0 to 1."""

METRICS: Mapping[str, str] = MappingProxyType(
    {
        **FRONT,
        "precision": "share of the named causes that are true",
        "recall": "share of the true causes that are named",
        "any_agent": "a true component is among the named ones, whatever the kind",
        "path": "from a true component that is named, named steps lead to an alarm",
        "path_kind": "the same, from one that is named with its true kind",
        "path_true": "the same as `path`, with true steps only",
        "node_f1": "F1 of the components that take part",
    }
)
"""All metrics: those of the front row, then those of the appendix; each goes from 0 to 1."""
EXCHANGED = "labels exchanged"
NO_HARM = "no harm"
"""The runs with a right and complete answer: in no figure but their own."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth about a run, over components.

    Attributes:
        nodes: The components that take part.
        edges: The steps from one to another.
        alarms: The components at which the consequences are seen.
        bystanders: The components that a fault acted on without consequence.
        innocent: The components of decoys.
        steps: The activations in which the faults first acted.
        onsets: The records at which they first showed.
    """

    causes: frozenset[_Cause]
    nodes: frozenset[str]
    edges: frozenset[_Way]
    alarms: frozenset[str]
    bystanders: frozenset[str] = frozenset()
    innocent: frozenset[str] = frozenset()
    steps: frozenset[int] = frozenset()
    onsets: frozenset[int] = frozenset()

    @classmethod
    def of(cls, graph: CausalGraph, label: Label | None = None) -> Truth:
        """The truth of a verified causal graph.

        Args:
            graph: The graph.
            label: The label of the run, if its steps and bystanders count.
        """
        over = graph.project()
        truth = cls(
            frozenset((cause.component, cause.kind) for cause in over.root_causes),
            frozenset(node.component for node in over.nodes),
            frozenset((edge.source, edge.target) for edge in over.edges),
            frozenset(over.alarms),
        )
        if label is None:
            return truth
        components = {component for component, _ in truth.causes}
        return replace(
            truth,
            bystanders=frozenset(cause.component for cause in label.bystanders) - components,
            innocent=frozenset(fault["target"] for fault in label.innocent) - components,
            steps=frozenset(cause.step for cause in label.causes),
            onsets=frozenset(cause.first_effect for cause in label.causes),
        )


def marks(answer: Answer, truth: Truth, concerned: Sequence[AbstractSet[str]]) -> dict[str, float]:
    """All metrics of an answer, by name. To name a bystander is neither right nor wrong.

    Args:
        answer: The answer.
        truth: The truth about the run.
        concerned: For each record of the trace, the components that it is about.
    """
    claims = [cause for cause in answer.root_causes if cause.component not in truth.bystanders]
    causes = {(cause.component, cause.kind) for cause in claims}
    named = {component for component, _ in causes}
    steps = {(step.source, step.target) for step in answer.propagation}
    true_components = {component for component, _ in truth.causes}
    hits = causes & truth.causes
    right = named & true_components
    nodes = named.union(*steps)
    step = answer.step
    is_near = step is not None and any(abs(step - true_step) <= 1 for true_step in truth.steps)
    precision, recall, f1 = agreement(causes, truth.causes)
    agent = float(claims[0].component in true_components if claims else not truth.causes)
    found_marks = {
        "exact": float(causes == truth.causes),
        "f1": f1,
        "agent": agent,
        "step": float(is_near) if truth.steps else agent,
        "edge_f1": agreement(steps, truth.edges)[2],
        "evidence": _evidence(answer, truth, concerned),
        "innocents": float(bool(named & truth.innocent)),
        "precision": precision,
        "recall": recall,
        "any_agent": float(bool(right) or named == true_components),
        "path": _path(right, steps, truth, named),
        "path_kind": _path({component for component, _ in hits}, steps, truth, named),
        "path_true": _path(right, steps & truth.edges, truth, named),
        "node_f1": agreement(nodes, truth.nodes)[2],
    }
    # A zero would look like the best score, where there was no decoy to fall for.
    if not truth.innocent:
        del found_marks["innocents"]
    return found_marks


def agreement(named: AbstractSet[T], true: AbstractSet[T]) -> tuple[float, float, float]:
    """Precision, recall and F1 of a named set against the true set."""
    if not named and not true:
        return 1.0, 1.0, 1.0
    shared = len(named & true)
    precision = shared / len(named) if named else 0.0
    recall = shared / len(true) if true else 0.0
    return precision, recall, 2 * shared / (len(named) + len(true))


def _path(
    anchors: Iterable[str], steps: Iterable[_Way], truth: Truth, named: AbstractSet[str]
) -> float:
    """Whether steps lead from an anchor to an alarm.

    An alarm at a true cause itself needs no step, but counts only if there is none elsewhere.
    """
    if not truth.causes:
        return float(not named)
    # An agent that is cause and alarm at once would make each path trivial.
    goals = truth.alarms - {component for component, _ in truth.causes} or truth.alarms
    graph = nx.DiGraph(list(steps))
    reached = {
        node
        for anchor in anchors
        for node in (anchor, *(nx.descendants(graph, anchor) if anchor in graph else ()))
    }
    return float(not goals.isdisjoint(reached))


def _evidence(answer: Answer, truth: Truth, concerned: Sequence[AbstractSet[str]]) -> float:
    """The share of evidence that holds; a claim without evidence counts as a wrong piece."""
    claims = [({cause.component}, cause.evidence) for cause in answer.root_causes]
    claims += [({step.source, step.target}, step.evidence) for step in answer.propagation]
    holds = [
        # A record that does not exist is wrong evidence, no error: answers come from anywhere.
        t is not None and t < len(concerned) and not concerned[t].isdisjoint(components)
        for components, evidence in claims
        for t in (evidence or (None,))
    ]
    if not holds:
        return float(not truth.causes)
    return sum(holds) / len(holds)


# --- all answers about a set ---


@dataclass(frozen=True)
class ScoredRun:
    """A run, and the metrics of the answer.

    Attributes:
        entry: Its line in the index.
        kind: The kinds of its faults.
        marks: The metrics, by name; `innocents` only where there are decoys.
        stratum: The difficulty: the reason why the cause is hard to tell.
        harm: Whether the run is a failure.
        off_by: The number of records from the named onset to the next true one, if one is named.
    """

    entry: Entry
    kind: str
    marks: dict[str, float]
    stratum: str = "plain"
    harm: bool = True
    off_by: int | None = None


_STRATA: Sequence[Callable[[ScoredRun], str]] = (
    lambda run: run.entry.split,
    lambda run: run.stratum,
    lambda run: run.entry.task,
    lambda run: f"{run.entry.agents:2} agents",
    lambda run: run.kind,
)


@dataclass(frozen=True)
class Scores:
    """The scores of an attributor's answers.

    Attributes:
        scored: The runs, by id.
        missing: The runs without an answer.
        unlabelled: The number of runs that were not scored, since their labels are kept back.
        floors: The same runs by each floor, and by the oracle.
        exchanged: The same answers with labels of other runs of the same sort: what chance gives.
    """

    by: str
    scored: tuple[ScoredRun, ...]
    missing: tuple[str, ...]
    unlabelled: int
    floors: Mapping[str, Sequence[ScoredRun]] = field(default_factory=dict)
    exchanged: Sequence[ScoredRun] = ()

    def strata(self) -> Iterator[tuple[str, list[ScoredRun]]]:
        """Group the runs: all failures, failures by each of `_STRATA`, and runs without harm."""
        failures = [run for run in self.scored if run.harm]
        yield "all", failures
        for stratum_of in _STRATA:
            for stratum, runs in by_kind(failures, stratum_of).items():
                yield stratum.strip(), runs
        if len(failures) < len(self.scored):
            yield NO_HARM, [run for run in self.scored if not run.harm]

    def tables(self) -> list[Table]:
        """The front row of each stratum beside the floors, and an appendix with all metrics."""
        appendix = [metric for metric in METRICS if metric not in FRONT]
        return [
            Table(
                "answers",
                f"Answers by {self.by or 'nobody'}",
                ["runs", "count", *FRONT, "onset"],
                [[name, len(runs), *_front(runs)] for name, runs in self.strata()],
                self.notes(),
            ),
            Table(
                "floors",
                "Beside what is no attribution, and what has the twin",
                ["by", "count", *FRONT, "onset"],
                [
                    [name, len(runs), *_front(runs)]
                    for name, runs in ((self.by or "nobody", self.failures), *self._floors())
                ],
                ["All failures. `oracle` compares the run with its twin, which no attributor has.",
                 *([f"`{EXCHANGED}`: the same answers with labels of other runs of the same sort."]
                   if self.exchanged else [])],
            ),
            Table(
                "appendix",
                f"Answers by {self.by or 'nobody'}: further metrics",
                ["runs", "count", *appendix],
                [
                    [name, len(runs), *(Value(_mean(runs, metric)) for metric in appendix)]
                    for name, runs in self.strata()
                ],
            ),
        ]  # fmt: skip

    @property
    def failures(self) -> list[ScoredRun]:
        """The failures among the runs."""
        return [run for run in self.scored if run.harm]

    def _floors(self) -> Iterator[tuple[str, list[ScoredRun]]]:
        for floor, scored in ((EXCHANGED, self.exchanged), *self.floors.items()):
            if scored:
                yield floor, [run for run in scored if run.harm]

    def notes(self) -> list[str]:
        """Notes on how to read the scores."""
        notes = [
            "Each metric is a mean over runs with its 95 % interval; 1 is best, of `innocents` 0.",
            "Onset: how many records the named one is off, median and quartiles of those named.",
        ]
        if self.missing:
            notes.append(
                f"{counted(len(self.missing), 'run')} without an answer, which counts as an empty "
                f"one: {cut(list(self.missing))}."
            )
        if self.unlabelled:
            notes.append(f"{counted(self.unlabelled, 'run')} not scored: no labels are there.")
        return notes

    def to_json(self) -> dict[str, Any]:
        """The scores as plain JSON, also of each run."""
        floors = {floor: _plain(runs) for floor, runs in self._floors()}
        return {
            "by": self.by,
            "missing": list(self.missing),
            "unlabelled": self.unlabelled,
            "strata": {stratum: _plain(runs) for stratum, runs in self.strata()},
            "floors": {floor: floors[floor] for floor in FLOORS if floor in floors},
            ORACLE: floors.get(ORACLE),
            "exchanged": floors.get(EXCHANGED),
            "runs": {run.entry.id: run.marks for run in self.scored},
        }


def _plain(runs: Sequence[ScoredRun]) -> dict[str, Any]:
    """The metrics of some runs, as plain JSON."""
    means: dict[str, Any] = {metric: as_json(_mean(runs, metric)) for metric in METRICS}
    return {**means, "onset": _onset(runs)}


def _front(runs: Sequence[ScoredRun]) -> list[str | Value]:
    """The cells of the front row for some runs."""
    off = _onset(runs)
    onset = "-" if off is None else "{:.0f} [{:.0f}, {:.0f}]".format(*off)
    return [*(Value(_mean(runs, metric)) for metric in FRONT), onset]


def _onset(runs: Sequence[ScoredRun]) -> tuple[float, float, float] | None:
    return spread([run.off_by for run in runs if run.off_by is not None])


def score(
    answers: Answers, fault_set: FaultSet, shuffle: int | None = None, *, with_floors: bool = True,
    structure_only: bool = False,
) -> Scores:  # fmt: skip
    """Score the answers about a set, beside the floors.

    Args:
        answers: The answers.
        fault_set: The set.
        shuffle: A seed: labels are exchanged at random between runs of the same configuration, so
            that what is left is what these answers would get by chance.
        with_floors: Whether the floors are computed, too.
        structure_only: Whether the answers are about the traces without contents, which held-out
            instances alone have.

    Raises:
        SettingsError: An answer is about a run that is not in the set, or the set has no labels.
    """
    ids = {entry.id for entry in fault_set.index.instances}
    for run in answers.answers:
        if run not in ids:
            raise SettingsError(f"answers.{name(run)}: {fault_set.path} has no such run")
    labelled = fault_set.labelled()
    if structure_only:
        labelled = [instance for instance in labelled if instance.structure is not None]
        if not labelled:
            raise SettingsError(f"{fault_set.path} has no labelled traces without contents")
    truths = labelled if shuffle is None else _shuffle(labelled, shuffle)
    # Once for the set: floors learn from its runs without a fault.
    attributors = {by: attributor(by, fault_set) for by in FLOORS} if with_floors else {}
    shuffled_truths = (
        _shuffle(labelled, 0) if with_floors and shuffle is None and answers.answers else ()
    )
    # What the same answers would get by chance.
    exchanged = [
        _Asked.about(instance, other).score(answers.answers.get(instance.entry.id, Answer()))
        for instance, other in zip(labelled, shuffled_truths, strict=False)
    ]
    scored: list[ScoredRun] = []
    floors: dict[str, list[ScoredRun]] = {}
    for instance, truth in zip(labelled, truths, strict=True):
        question = _Asked.about(instance, truth)
        scored.append(question.score(answers.answers.get(instance.entry.id, Answer())))
        if with_floors:
            case = case_about(instance, structure_only=structure_only)
            for by, floor in attributors.items():
                floors.setdefault(by, []).append(question.score(answer(by, floor, case)))
            floors.setdefault(ORACLE, []).append(question.score(oracle(instance)))
    return Scores(
        by=answers.by,
        scored=tuple(scored),
        missing=tuple(
            instance.entry.id for instance in labelled if instance.entry.id not in answers.answers
        ),
        unlabelled=len(ids) - len(labelled),
        floors=floors,
        exchanged=exchanged,
    )


def _shuffle(labelled: Sequence[Instance], seed: int) -> list[Instance]:
    """The same instances, exchanged within each configuration."""
    chance = random.Random(f"shuffle/{seed}")
    # Within a configuration, names of agents and sizes of graphs stay comparable.
    of = by_kind(labelled, lambda instance: instance.entry.configuration)
    for group in of.values():
        chance.shuffle(group)
    return [of[instance.entry.configuration].pop() for instance in labelled]


@dataclass(frozen=True)
class _Asked:
    """A run to score answers about, and the truth."""

    entry: Entry
    label: Label
    truth: Truth
    concerned: Sequence[AbstractSet[str]]

    @classmethod
    def about(cls, instance: Instance, truth: Instance) -> _Asked:
        """The run of an instance with the truth of the same instance, or of another."""
        run, label = instance.records(), truth.label()
        true = Truth.of(truth.graph(), label)
        return cls(instance.entry, label, true, record_components(RecordedRun(run)))

    def score(self, answer: Answer) -> ScoredRun:
        """The metrics of an answer."""
        off_by = None
        if answer.onset is not None:
            off_by = min((abs(answer.onset - t) for t in self.truth.onsets), default=None)
        hits = marks(answer, self.truth, self.concerned)
        label = self.label
        return ScoredRun(self.entry, label.kind, hits, label.stratum, label.harm, off_by)


def _mean(runs: Sequence[ScoredRun], metric: str) -> Mean | None:
    """The mean over runs; runs with the same twin count once, since they are alike."""
    # Instances with the same twin are no independent samples, so they count as one.
    of_each: dict[str, list[float]] = {}
    for run in runs:
        if metric in run.marks:
            of_each.setdefault(run.entry.sha256[TWIN], []).append(run.marks[metric])
    return share([fmean(values) for values in of_each.values()])
