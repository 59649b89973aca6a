"""Forward verification: follows the consequences of a known fault, step by step.

It starts from the injected faults. A thing in a state joins the causal graph only if (a) a rule
admits the step to it from a thing that has joined, (b) its number deviates from its twin's and
lies beyond the spread of fault-free runs, and (c) it is not seen before its cause. What remains are
the paths that end in an alarm. docs/lab/faults-verification.md has all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

import networkx as nx

from dig.diagnosis.causes import CausalGraph, Cause, Edge, Node
from dig.faults.inject.fault import Fault
from dig.lab.run_pair import Played
from dig.tasks.accounting import TaskParts
from dig.traces.run import RecordedRun

from .baseline import Baseline
from .matching import Matching
from .measurements import count_findings
from .relations import Setting
from .rules import RULES
from .states import UNUSUAL, deviations

GOOD: Final = "good"
"""The verdict about a run with a right and complete answer."""
SILENT: Final = "silent injection"
BASELINE_ANOMALOUS: Final = "baseline anomalous"
TWIN_ANOMALOUS: Final = "twin anomalous"
NO_CONSEQUENCE: Final = "no consequence"
NOT_VERIFIED: Final = "not verified"

Alarms = AbstractSet[str]
ALARMS: Alarms = frozenset({"outcome", "finding"})
"""The types of visible failures: the outcome, and findings that rules lead to."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The ending of a faulted run.

    Attributes:
        is_good: Whether the run's answer was right and complete.
        raised: The patterns that were raised.
    """

    is_good: bool
    raised: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """Why a run is no instance with a known cause.

    Attributes:
        reason: One of the reasons above, or one of the benchmark's.
        ending: The ending of the run, if that is known.
    """

    reason: str
    ending: Ending | None = None


def verify_all(
    faulted: Played, twin: Played, baseline: Baseline, alarms_are: Alarms = ALARMS
) -> CausalGraph | Dropped:
    """Verify like `verify`; for a session, join the graphs of all problems with a bad end.

    Args:
        faulted: The run with its faults.
        twin: The same run without them.
        baseline: Fault-free runs of the same configuration with other seeds.
        alarms_are: The types of nodes that paths lead to.
    """
    if len(faulted.problems) == 1:
        return verify(faulted, twin, baseline, alarms_are)
    if not is_all_good(verdicts(twin, baseline)):
        return Dropped(TWIN_ANOMALOUS)
    graphs: list[CausalGraph] = []
    for problem, other in zip(faulted.problems, twin.problems, strict=True):
        if verdict(problem, baseline, other.rmse) != GOOD:
            graph = verify(problem, other, baseline, alarms_are)
            if isinstance(graph, Dropped):
                return graph
            graphs.append(graph)
    if not graphs:
        return Dropped(SILENT if faulted.records == twin.records else NO_CONSEQUENCE)
    return _unite(graphs)


def _unite(graphs: Sequence[CausalGraph]) -> CausalGraph:
    nodes = {node.id: node for graph in graphs for node in graph.nodes}
    edges = dict.fromkeys(edge for graph in graphs for edge in graph.edges)
    causes = {cause for graph in graphs for cause in graph.root_causes}
    alarms = dict.fromkeys(alarm for graph in graphs for alarm in graph.alarms)
    in_order = sorted(nodes.values(), key=lambda node: (node.onset_t, node.id))
    return CausalGraph(tuple(in_order), tuple(edges), tuple(sorted(causes)), tuple(alarms))


def verify(
    faulted: Played, twin: Played, baseline: Baseline, alarms_are: Alarms = ALARMS
) -> CausalGraph | Dropped:
    """Follow the consequences of the faults of a run.

    Args:
        faulted: The run with its faults.
        twin: The same run without them.
        baseline: Fault-free runs of the same configuration with other seeds.
        alarms_are: The types of nodes that paths lead to. By default all types; every fault then
            needs a path, and a twin with unusual findings is no measure. With fewer types, a fault
            without a path is no root cause, and the twin's answer alone must be good.
    """
    is_strict = alarms_are == ALARMS
    # The cheap reasons come first: most candidates are dropped.
    if {injection.fault for injection in faulted.injections} != set(range(len(faulted.faults))):
        return Dropped(SILENT)
    runs = Matching(faulted.parts, twin.parts)
    # The faults acted, but changed nothing.
    if runs.first == len(faulted.records) == len(twin.records):
        return Dropped(SILENT)
    # Where fault-free runs often fail, a failure shows nothing.
    if any(baseline.rarity(f"outcome {state}", 1) > UNUSUAL for state in ("missing", "timeout")):
        return Dropped(BASELINE_ANOMALOUS)
    # A twin that fails by itself is no measure.
    if not is_good(runs.twin_parts, twin.rmse, baseline) or (
        is_strict and _has_unusual_findings(runs.twin, baseline)
    ):
        return Dropped(TWIN_ANOMALOUS)
    deviant_nodes = deviations(runs, baseline, faulted.rmse, twin.rmse)
    alarms = {node.id for node in deviant_nodes if node.type in alarms_are}
    if not alarms:
        return Dropped(NO_CONSEQUENCE)
    setting = Setting(runs.faulted_parts, faulted.injections)
    nodes = sorted([*_roots(runs.faulted, faulted), *deviant_nodes], key=lambda node: node.onset_t)
    return _graph(faulted, nodes, alarms, setting, is_strict) or Dropped(NOT_VERIFIED)


def is_good(parts: TaskParts, rmse: float | None, baseline: Baseline) -> bool:
    """Whether a run has a complete answer, no worse than the answers of fault-free runs.

    Args:
        parts: The run, with the parts of its task.
        rmse: The error of its answer, if that is known.
        baseline: Fault-free runs of the same configuration.
    """
    # An incomplete answer is no good one, however small its error.
    if parts.answer is None or parts.about(parts.answer) != parts.whole:
        return False
    return rmse is None or baseline.rarity("outcome wrong", rmse) > UNUSUAL


def verdict(run: Played, baseline: Baseline, twin_rmse: float | None = None) -> str:
    """Judge a run: `good`, or how the run is bad.

    Args:
        run: The run.
        baseline: Fault-free runs of the same configuration: an answer is wrong if its error is one
            that they hardly ever have.
        twin_rmse: The error without the faults; the answer is wrong only if its own is larger.

    Returns:
        `good`; `incomplete`, `wrong` or `invalid` for an answer; else the outcome of the run.
    """
    if run.result.outcome != "submitted":
        return run.result.outcome
    if run.score is None:
        return GOOD
    if not run.score.valid:
        return "invalid"
    if run.score.complete is False:
        return "incomplete"
    rmse = run.score.rmse
    # An error that the twin has as well is not the fault's doing.
    if rmse is None or (twin_rmse is not None and rmse <= twin_rmse):
        return GOOD
    return "wrong" if baseline.rarity("outcome wrong", rmse) <= UNUSUAL else GOOD


def verdicts(run: Played, baseline: Baseline, twin: Played | None = None) -> tuple[str, ...]:
    """Judge each problem of a run.

    Args:
        run: The run.
        baseline: Fault-free runs of the same configuration.
        twin: The run without the faults; an answer is wrong only if its error is larger than there.
    """
    twins = twin.problems if twin else (None,) * len(run.problems)
    return tuple(
        verdict(problem, baseline, other.rmse if other else None)
        for problem, other in zip(run.problems, twins, strict=True)
    )


def is_all_good(came_to: Iterable[str]) -> bool:
    """Whether all problems of a run came to a good end."""
    return {*came_to} == {GOOD}


def at_rest(fault: Fault) -> Fault:
    """The same fault, but without any act; all other faults keep place and random numbers."""
    return replace(fault, parameters={**fault.parameters, "at_most": 0})


def _has_unusual_findings(run: RecordedRun, baseline: Baseline) -> bool:
    """Whether a run has findings that are rare in fault-free runs."""
    return any(
        count and baseline.rarity(f"raised {pattern}", count) <= UNUSUAL
        for pattern, count in count_findings(run).items()
    )


def _roots(run: RecordedRun, faulted: Played) -> Iterable[Node]:
    """The targets of the faults, each since the first act or the end of the act's activation."""
    ends = {
        activation.id: activation.end.t for activation in run.activations.values() if activation.end
    }
    first: dict[str, int] = {}
    for injection in faulted.injections:
        t = min(injection.t, ends.get(injection.activation or "", injection.t))
        first[injection.agent] = min(t, first.get(injection.agent, t))
    for agent, t in sorted(first.items(), key=lambda item: (item[1], item[0])):
        yield Node(
            type="agent",
            name=agent,
            component=agent,
            state="injected",
            onset_t=t,
            onset_s=faulted.records[t].ts,
            test="intervention",
            value=sum(injection.agent == agent for injection in faulted.injections),
            twin=0,
        )


def _graph(
    faulted: Played, nodes: Sequence[Node], alarms: set[str], setting: Setting, is_strict: bool
) -> CausalGraph | None:
    """The paths from the targets of faults to alarms; ``None``, if there is no path.

    Args:
        faulted: The run with its faults.
        nodes: All deviations, and the targets, in order of onset.
        alarms: The ids of the nodes that paths lead to.
        setting: The setting of questions about relations.
        is_strict: Whether each fault needs a path.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(node.id for node in nodes)
    edges = list(_steps(nodes, setting))
    graph.add_edges_from((edge.source, edge.target) for edge in edges)
    roots = [node.id for node in nodes if node.state == "injected"]
    if not is_strict:
        reach: Mapping[str, set[str]] = {root: nx.descendants(graph, root) for root in roots}
        roots = [root for root in roots if not alarms.isdisjoint(reach[root])]
    # Forward from the causes, then back from the alarms: what is on a whole path remains.
    reached = set(roots).union(*(nx.descendants(graph, root) for root in roots))
    alarms_reached = alarms & reached
    explained = reached & alarms_reached.union(
        *(nx.ancestors(graph, alarm) for alarm in alarms_reached)
    )
    if not roots or not explained.issuperset(roots):
        return None
    targets = {node.name for node in nodes if node.id in roots}
    causes = {
        Cause(fault.target, fault.row.name) for fault in faulted.faults if fault.target in targets
    }
    return CausalGraph(
        tuple(node for node in nodes if node.id in explained),
        tuple(edge for edge in edges if {edge.source, edge.target} <= explained),
        tuple(sorted(causes)),
        tuple(node.id for node in nodes if node.id in alarms_reached),
    )


def _steps(nodes: Sequence[Node], setting: Setting) -> Iterable[Edge]:
    """All steps that a rule admits, unless the effect is visible before the cause."""
    for source in nodes:
        rules = [rule for rule in RULES if rule.begins(source)]
        for target in nodes:
            # No effect is seen before its cause.
            if source.onset_t > target.onset_t:
                continue
            for rule in rules:
                if rule.ends(target) and rule.relation(setting, source, target):
                    yield Edge(source.id, target.id, rule.id)
