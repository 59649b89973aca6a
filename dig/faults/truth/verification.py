"""Forward verification: follows the consequences of a known fault, step by step.

It starts from the injected faults. A thing in a state joins the causal graph only if (a) a rule
admits the step to it from a thing that has joined, (b) its number deviates from its twin's and
lies beyond the spread of fault-free runs, and (c) it is not seen before its cause. What remains are
the paths that end in an alarm. docs/faults-verification.md has all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import networkx as nx

from dig.diagnosis.causes import CausalGraph, Cause, Edge, Node
from dig.faults.inject.run_pair import Played
from dig.tasks.accounting import PAYLOADS, TaskParts
from dig.traces.run import RecordedRun

from .baseline import Baseline
from .matching import Matching
from .measurements import raised
from .relations import Setting
from .rules import RULES
from .states import UNUSUAL, deviations

SILENT: Final = "silent injection"
BASELINE_ANOMALOUS: Final = "baseline anomalous"
TWIN_ANOMALOUS: Final = "twin anomalous"
NO_CONSEQUENCE: Final = "no consequence"
NOT_VERIFIED: Final = "not verified"

ALARMS = frozenset({"outcome", "finding"})
"""The types of visible failures: the outcome, and findings that rules lead to."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Why a run is no instance with a known cause; one of the reasons above."""

    reason: str


def verify(faulted: Played, twin: Played, baseline: Baseline) -> CausalGraph | Dropped:
    """Follow the consequences of the faults of a run.

    Args:
        faulted: The run with its faults.
        twin: The same run without them.
        baseline: Fault-free runs of the same configuration with other seeds.
    """
    if {one.fault for one in faulted.injections} != set(range(len(faulted.faults))):
        return Dropped(SILENT)
    runs = Matching(_parts(faulted), _parts(twin))
    if runs.first == len(faulted.records) == len(twin.records):
        return Dropped(SILENT)
    if any(baseline.rarity(f"outcome {state}", 1) > UNUSUAL for state in ("missing", "timeout")):
        return Dropped(BASELINE_ANOMALOUS)
    if _is_anomalous(runs.twin_parts, twin, baseline):
        return Dropped(TWIN_ANOMALOUS)
    found = deviations(runs, baseline, faulted.rmse, twin.rmse)
    alarms = {node.id for node in found if node.type in ALARMS}
    if not alarms:
        return Dropped(NO_CONSEQUENCE)
    setting = Setting(runs.faulted_parts, faulted.injections)
    nodes = sorted([*_roots(runs.faulted, faulted), *found], key=lambda node: node.onset_t)
    return _graph(faulted, nodes, alarms, setting) or Dropped(NOT_VERIFIED)


def _parts(played: Played) -> TaskParts:
    return TaskParts(RecordedRun(played.records), PAYLOADS)


def _is_anomalous(parts: TaskParts, twin: Played, baseline: Baseline) -> bool:
    """Whether the twin itself has an alarm that fault-free runs hardly ever have."""
    run = parts.run
    if run.answer is None or parts.about(run.answer) != parts.whole:
        return True
    if twin.rmse is not None and baseline.rarity("outcome wrong", twin.rmse) <= UNUSUAL:
        return True
    return any(
        count and baseline.rarity(f"raised {pattern}", count) <= UNUSUAL
        for pattern, count in raised(run).items()
    )


def _roots(run: RecordedRun, faulted: Played) -> Iterable[Node]:
    """The targets of the faults, each since the first act or the end of that act's activation."""
    ends = {one.id: one.end.t for one in run.activations.values() if one.end}
    first: dict[str, int] = {}
    for one in faulted.injections:
        t = min(one.t, ends.get(one.activation or "", one.t))
        first[one.agent] = min(t, first.get(one.agent, t))
    for agent, t in sorted(first.items(), key=lambda item: (item[1], item[0])):
        yield Node(
            type="agent",
            name=agent,
            component=agent,
            state="injected",
            onset_t=t,
            onset_s=faulted.records[t].ts,
            test="intervention",
            value=sum(one.agent == agent for one in faulted.injections),
            twin=0,
        )


def _graph(
    faulted: Played, nodes: Sequence[Node], alarms: set[str], setting: Setting
) -> CausalGraph | None:
    """The paths from what was injected to alarms; ``None``, if a fault has no such path."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(node.id for node in nodes)
    edges = list(_steps(nodes, setting))
    graph.add_edges_from((edge.source, edge.target) for edge in edges)
    roots = [node.id for node in nodes if node.state == "injected"]
    reached = set(roots).union(*(nx.descendants(graph, root) for root in roots))
    seen = alarms & reached
    kept = reached & seen.union(*(nx.ancestors(graph, alarm) for alarm in seen))
    if not kept.issuperset(roots):
        return None
    return CausalGraph(
        tuple(node for node in nodes if node.id in kept),
        tuple(edge for edge in edges if {edge.source, edge.target} <= kept),
        tuple(sorted({Cause(fault.target, fault.kind) for fault in faulted.faults})),
        tuple(node.id for node in nodes if node.id in seen),
    )


def _steps(nodes: Sequence[Node], setting: Setting) -> Iterable[Edge]:
    """All steps that a rule admits and in which no effect is seen before its cause, in order."""
    for source in nodes:
        rules = [rule for rule in RULES if rule.begins(source)]
        for target in nodes:
            if source.onset_t > target.onset_t:
                continue
            for rule in rules:
                if rule.ends(target) and rule.relation(setting, source, target):
                    yield Edge(source.id, target.id, rule.id)
