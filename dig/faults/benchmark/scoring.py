"""How good an answer about one run is, held against its verified causal graph.

What an answer says about the causes is scored by itself, and so is what it says about the way from
there to the consequences, over components: agents, `task` and `outcome`. Where a set that is
predicted and the set that is true are both empty, the answer is right: 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import networkx as nx

from dig.diagnosis.causes import CausalGraph

from .answers import Answer

T = TypeVar("T")
Cause = tuple[str, str]
"""A component and the kind of its fault."""
Way = tuple[str, str]
"""A step from a component to another."""

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
"""What is measured, in the order of all tables; each goes from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of one run, over components.

    Attributes:
        causes: The root causes.
        nodes: The components that take part.
        edges: The steps from one to another.
        alarms: Where the consequences are seen.
    """

    causes: frozenset[Cause]
    nodes: frozenset[str]
    edges: frozenset[Way]
    alarms: frozenset[str]

    @classmethod
    def of(cls, graph: CausalGraph) -> Truth:
        """What a verified causal graph says."""
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
        answer: What was answered.
        truth: What is true.
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
    anchors: Iterable[str], steps: Iterable[Way], truth: Truth, named: AbstractSet[str]
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
