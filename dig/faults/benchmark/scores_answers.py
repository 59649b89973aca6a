"""Scores of answers about a set: each is compared with the verified causal graph of its run.

The named causes are scored by themselves, and so are the named steps from there to the
consequences, over components: agents, `task` and `outcome`. Where the predicted set and the true
set are both empty, the answer is right: 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import networkx as nx

from dig._util.text import counted, cut, name
from dig.diagnosis.causes import CausalGraph
from dig.diagnosis.components import concerned
from dig.errors import SettingsError
from dig.tasks.experiment.statistics import Mean, as_json, share
from dig.tasks.experiment.table import Table, Value

from .answers import Answer, Answers
from .instances import Entry, FaultSet, Instance, by_kind

T = TypeVar("T")
_Cause = tuple[str, str]  # a component and the kind of its fault
_Way = tuple[str, str]  # a step from one component to another

METRICS: Mapping[str, str] = MappingProxyType(
    {
        "exact": "the causes, (component, kind), are exactly the true ones",
        "precision": "share of the named causes that are true",
        "recall": "share of the true causes that are named",
        "f1": "harmonic mean of the two",
        "any_agent": "a true component is among the named ones, whatever the kind",
        "path": "from a true component that is named, named steps lead to an alarm",
        "path_kind": "the same, from one that is named with its true kind",
        "path_true": "the same as `path`, with true steps only",
        "node_f1": "F1 of the components that take part",
        "edge_f1": "F1 of the steps between components",
        "evidence": "share of the evidence that exists and is about the component it is for",
    }
)
"""The metrics, in the order of all tables; each goes from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth about one run, over components.

    Attributes:
        causes: The root causes.
        nodes: The components that take part.
        edges: The steps from one to another.
        alarms: The components at which the consequences are seen.
    """

    causes: frozenset[_Cause]
    nodes: frozenset[str]
    edges: frozenset[_Way]
    alarms: frozenset[str]

    @classmethod
    def of(cls, graph: CausalGraph) -> Truth:
        """The truth of a verified causal graph."""
        over = graph.project()
        return cls(
            frozenset((cause.component, cause.kind) for cause in over.root_causes),
            frozenset(node.component for node in over.nodes),
            frozenset((edge.source, edge.target) for edge in over.edges),
            frozenset(over.alarms),
        )


def marks(answer: Answer, truth: Truth, concerned: Sequence[AbstractSet[str]]) -> dict[str, float]:
    """All metrics of an answer, by name.

    Args:
        answer: The answer.
        truth: The truth about the run.
        concerned: For each record of the trace, the components that it is about.
    """
    causes = {(cause.component, cause.kind) for cause in answer.root_causes}
    named = {component for component, _ in causes}
    steps = {(step.source, step.target) for step in answer.propagation}
    true_components = {component for component, _ in truth.causes}
    hits = causes & truth.causes
    found = named & true_components
    nodes = named.union(*steps)
    precision, recall, f1 = agreement(causes, truth.causes)
    return {
        "exact": float(causes == truth.causes),
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "any_agent": float(bool(found) or named == true_components),
        "path": _path(found, steps, truth, named),
        "path_kind": _path({component for component, _ in hits}, steps, truth, named),
        "path_true": _path(found, steps & truth.edges, truth, named),
        "node_f1": agreement(nodes, truth.nodes)[2],
        "edge_f1": agreement(steps, truth.edges)[2],
        "evidence": _evidence(answer, truth, concerned),
    }


def agreement(said: AbstractSet[T], true: AbstractSet[T]) -> tuple[float, float, float]:
    """Precision, recall and F1 of a set that is said against the one that is true."""
    if not said and not true:
        return 1.0, 1.0, 1.0
    both = len(said & true)
    precision = both / len(said) if said else 0.0
    recall = both / len(true) if true else 0.0
    return precision, recall, 2 * both / (len(said) + len(true))


def _path(
    anchors: Iterable[str], steps: Iterable[_Way], truth: Truth, named: AbstractSet[str]
) -> float:
    """Whether steps lead from one of the anchors to an alarm.

    An alarm at a true cause itself needs no step, but counts only if there is none elsewhere.
    """
    if not truth.causes:
        return float(not named)
    goals = truth.alarms - {component for component, _ in truth.causes} or truth.alarms
    graph = nx.DiGraph(list(steps))
    reached = {
        node
        for anchor in anchors
        for node in (anchor, *(nx.descendants(graph, anchor) if anchor in graph else ()))
    }
    return float(not goals.isdisjoint(reached))


def _evidence(answer: Answer, truth: Truth, concerned: Sequence[AbstractSet[str]]) -> float:
    """The share of evidence that holds; a claim without any is one piece that does not."""
    claims = [({cause.component}, cause.evidence) for cause in answer.root_causes]
    claims += [({step.source, step.target}, step.evidence) for step in answer.propagation]
    holds = [
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
    """One run, and the metrics of the answer about it.

    Attributes:
        entry: Its line in the index.
        kind: The kinds of its faults.
        marks: The metrics, by name.
    """

    entry: Entry
    kind: str
    marks: dict[str, float]


_STRATA: Sequence[Callable[[ScoredRun], str]] = (
    lambda one: one.entry.split,
    lambda one: one.entry.task,
    lambda one: f"{one.entry.agents:2} agents",
    lambda one: one.kind,
)


@dataclass(frozen=True)
class Scores:
    """The scores of the answers of one attributor.

    Attributes:
        by: The attributor's name.
        scored: The runs, by id.
        missing: The runs without an answer.
        unlabelled: The number of runs that were not scored, since their labels are kept back.
    """

    by: str
    scored: tuple[ScoredRun, ...]
    missing: tuple[str, ...]
    unlabelled: int

    def strata(self) -> Iterator[tuple[str, list[ScoredRun]]]:
        """All runs, and those of each part, task, size of team and kind of fault."""
        yield "all", list(self.scored)
        for stratum_of in _STRATA:
            for stratum, some in by_kind(self.scored, stratum_of).items():
                yield stratum.strip(), some

    def table(self) -> Table:
        """A row a stratum, a column a metric."""
        return Table(
            "answers",
            f"Answers by {self.by or 'nobody'}",
            ["runs", "count", *METRICS],
            [
                [stratum, len(some), *(Value(_mean(some, metric)) for metric in METRICS)]
                for stratum, some in self.strata()
            ],
            self.notes(),
        )

    def notes(self) -> list[str]:
        """Notes on how to read the scores."""
        notes = ["Each metric is a mean over runs with its 95 % interval; 1 is best."]
        if self.missing:
            notes.append(
                f"{counted(len(self.missing), 'run')} without an answer, which counts as an empty "
                f"one: {cut(list(self.missing))}."
            )
        if self.unlabelled:
            notes.append(f"{counted(self.unlabelled, 'run')} not scored: no labels are there.")
        return notes

    def to_json(self) -> dict[str, Any]:
        """The scores as plain JSON, those of each run too."""
        return {
            "by": self.by,
            "missing": list(self.missing),
            "unlabelled": self.unlabelled,
            "strata": {
                stratum: {metric: as_json(_mean(some, metric)) for metric in METRICS}
                for stratum, some in self.strata()
            },
            "runs": {one.entry.id: one.marks for one in self.scored},
        }


def score(answers: Answers, known: FaultSet, shuffle: int | None = None) -> Scores:
    """The scores of answers about a set.

    Args:
        answers: The answers.
        known: The set.
        shuffle: A seed: labels are exchanged at random between runs of the same configuration, so
            that what is left is what these answers would get by chance.

    Raises:
        SettingsError: An answer is about a run that is not in the set, or the set has no labels.
    """
    ids = {entry.id for entry in known.index.instances}
    for given in answers.answers:
        if given not in ids:
            raise SettingsError(f"answers.{name(given)}: {known.path} has no such run")
    labelled = known.labelled()
    truths = labelled if shuffle is None else _shuffled(labelled, shuffle)
    return Scores(
        by=answers.by,
        scored=tuple(
            _scored(one, truth, answers.answers.get(one.entry.id, Answer()))
            for one, truth in zip(labelled, truths, strict=True)
        ),
        missing=tuple(one.entry.id for one in labelled if one.entry.id not in answers.answers),
        unlabelled=len(ids) - len(labelled),
    )


def _shuffled(labelled: Sequence[Instance], seed: int) -> list[Instance]:
    """The same instances, exchanged within each configuration."""
    chance = random.Random(f"shuffle/{seed}")
    of = by_kind(labelled, lambda one: one.entry.configuration)
    for some in of.values():
        chance.shuffle(some)
    return [of[one.entry.configuration].pop() for one in labelled]


def _scored(instance: Instance, truth: Instance, answer: Answer) -> ScoredRun:
    found = marks(answer, Truth.of(truth.graph()), concerned(instance.records()))
    return ScoredRun(instance.entry, truth.label().kind, found)


def _mean(some: Sequence[ScoredRun], metric: str) -> Mean | None:
    return share([one.marks[metric] for one in some])
