"""Checks one causal graph against trace, twin, label and baseline."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from .counterparts import Counterparts
from .first_seen import component, first_seen, piece
from .history import History
from .numbers import Number, bounds, numbers, shown
from .relations import Rule, holds

Graph = dict[str, Any]
Pool = dict[str, list[float]]

MISFITS = (AttributeError, KeyError, IndexError, TypeError, ValueError)
"""What comes of it if a graph speaks of what the trace does not have."""

FINE = {"slow", "late", "delayed", "overdue", "miscounted"}


def level(state: str) -> float:
    return 0.01 if state in FINE else 0.05


def pooled(runs: Iterable[tuple[History, float | None]]) -> Pool:
    """The numbers of a baseline's runs, by measure, in order."""
    pool: Pool = defaultdict(list)
    for history, rmse in runs:
        for measure, value in numbers(history, rmse, bounds(history), shown(history)).values():
            pool[measure].append(value)
    return {measure: sorted(values) for measure, values in pool.items()}


def rarity(pool: Pool, measure: str, value: float) -> float:
    values = pool.get(measure, [])
    return round((1 + len(values) - bisect_left(values, value)) / (1 + len(values)), 6)


def asked(label: Graph) -> list[list[int] | None]:
    """The range that each problem of a run is about; none, if there is one problem."""
    run = label.get("run", {})
    count = run.get("problems", 1)
    if count == 1:
        return [None]
    size = run["size"]
    return [[size * i // count, size * (i + 1) // count] for i in range(count)]


def wrong(graph: Graph, views: list[Instance], rules: dict[str, Rule]) -> Iterator[str]:
    """What is wrong with a graph, one sentence each.

    In a session a thing and a step are right if they are as one of the problems that came to a bad
    end sees them.
    """
    first = views[0]
    bad = views[:1] if len(views) == 1 else [one for one in views if not one.ended_well] or views
    nodes = {node["id"]: node for node in graph["nodes"]}
    for node in nodes.values():
        found = [[*one._node(node)] for one in bad]
        yield from (f"{node['id']}: {what}" for what in min(found, key=len))
    for edge in graph["edges"]:
        way = f"{edge['source']} -> {edge['target']} by {edge['rule']}"
        if edge["source"] not in nodes or edge["target"] not in nodes:
            yield f"{way}: names what is no node"
            continue
        source, target = nodes[edge["source"]], nodes[edge["target"]]
        found = [[*one._edge(rules, edge, source, target)] for one in bad]
        yield from (f"{way}: {what}" for what in min(found, key=len))
    yield from first._whole(nodes)
    if first.label.get("causes"):  # of the benchmark
        yield from first._hidden(views)


class Instance:
    """One run of a set, with what is said of it; of a session, as one of its problems sees it."""

    def __init__(
        self, files: tuple[Path, Path], label: Any, graph: Graph, pool: Pool, place: int = 0
    ) -> None:
        self.graph, self.label, self.pool = graph, label, pool
        problem = asked(label)[place]
        self.pair = Counterparts(*(History.read(path, problem) for path in files))
        self.trace, self.twin = self.pair.trace, self.pair.twin
        cuts, data = bounds(self.trace, self.twin), shown(self.trace, self.twin)
        self.faulted, self.ideal = (
            label[end].get("problems", [label[end]])[place] for end in ("faulted", "twin")
        )
        self.mine = numbers(self.trace, self.faulted["rmse"], cuts, data)
        self.usual = numbers(self.twin, self.ideal["rmse"], cuts, data)
        self.cuts = cuts

    @property
    def ended_well(self) -> bool:
        return self._is_good(self.faulted, self.ideal["rmse"])

    def broken(self, rules: dict[str, Rule]) -> Iterator[str]:
        """What is wrong with the graph of a run with one problem."""
        return wrong(self.graph, [self], rules)

    # --- (b) ---

    def _node(self, node: Graph) -> Iterator[str]:
        type_, name, state = node["type"], node["name"], node["state"]
        if node["id"] != ":".join(part for part in (type_, name, state) if part):
            yield "is not called so"
        if state == "injected":
            yield from self._injected(node)
            return
        try:
            yield from self._deviation(node)
            seen = {first_seen(self.pair, type_, one, state) for one in self._pieces(node)}
            (t,) = seen
        except MISFITS as error:
            yield f"is nothing that is in such a state ({error!r})"
            return
        if node["onset_t"] != t or node["onset_s"] != self.trace.rows[t]["ts"]:
            yield f"is first seen at record {node['onset_t']}; it is {t}"
        whose = component(self.pair, type_, name, state, t)
        if node["component"] != whose:
            yield f"is said to be {node['component']}'s, and is {whose}'s"

    def _deviation(self, node: Graph) -> Iterator[str]:
        for measure, value, usual in self._measured(node):
            said = node["test"], node["value"], node["twin"], node["baseline"]
            rare = rarity(self.pool, measure, value)
            if said != (measure, value, usual, rare):
                yield f"says {said}, and is {(measure, value, usual, rare)}"
            if not value > (usual or 0):
                yield f"its {value} is no more than its twin's {usual}"
            if node["state"] == "late" and usual is None:
                yield "is late without a counterpart"
            if rare > level(node["state"]):
                yield f"its {value} is no rarer than {rare} among fault-free runs"
        if node["type"] == "finding":
            row = self.trace.rows[int(node["name"])]
            if not self.pair.finding_is_new(row) and row["subject"] != {}:
                yield "is raised in the twin, too"

    def _measured(self, node: Graph) -> Iterator[tuple[str, float, float | None]]:
        """Measure, value and the counterpart's value; of each piece that a part is made of."""
        type_, state = node["type"], node["state"]
        names = self._pieces(node)
        if type_ == "finding":
            names = [self.trace.rows[int(node["name"])]["pattern"]]
        for name in names:
            same = self.pair.of.get(name) if type_ in ("event", "activation") else name
            usual: Number | None = (
                self.usual.get((type_, same or "", state)) if same is not None else None
            )
            measure, value = self.mine[type_, name, state]
            yield measure, value, usual[1] if usual else None

    def _pieces(self, node: Graph) -> list[str]:
        """The names of the parts that a part is put together of; of all else its own."""
        if node["type"] != "part":
            return [node["name"]]
        ((low, high),) = piece(node["name"])
        inner = [cut for cut in self.cuts if low <= cut <= high]
        return [f"{a}-{b}" for a, b in pairwise(inner)]

    def _injected(self, node: Graph) -> Iterator[str]:
        acts = [self._began(a) for a in self.label["injections"] if a["agent"] == node["name"]]
        if not acts or node["onset_t"] != min(acts) or node["value"] != len(acts):
            yield f"does not follow from the injections at {acts}"
        elif node["onset_s"] != self.trace.rows[min(acts)]["ts"]:
            yield "is at another time than its record"
        if node["component"] != node["name"]:
            yield "is not its own component"

    def _began(self, act: Graph) -> int:
        """An act's record, or the end of its activation, whichever is earlier."""
        turn = self.trace.turns.get(act["activation"] or "")
        t = int(act["t"])
        return min(t, t if turn is None or turn.stop is None else turn.stop)

    # --- (a) and (c) ---

    def _edge(
        self, rules: dict[str, Rule], edge: Graph, source: Graph, target: Graph
    ) -> Iterator[str]:
        rule = rules.get(edge["rule"])
        if rule is None:
            yield "there is no such rule"
            return
        if source["type"] != rule.source or source["state"] not in rule.source_states:
            yield "the rule does not begin with such a node"
        elif target["type"] != rule.target or target["state"] not in rule.target_states:
            yield "the rule does not end with such a node"
        elif not self._holds(rule.relation, source, target):
            yield f'it does not hold that the one "{rule.relation}" the other'
        if source["onset_t"] > target["onset_t"]:
            yield "the effect is seen before its cause"

    def _holds(self, relation: str, source: Graph, target: Graph) -> bool:
        try:
            return holds(relation, self.trace, self.label["injections"], source, target)
        except MISFITS:
            return False

    def _whole(self, nodes: dict[str, Graph]) -> Iterator[str]:
        """Whether all lies between injections and alarms, and these are what it says."""
        if min(map(self._began, self.label["injections"]), default=0) > self.pair.first:
            yield f"trace and twin differ from record {self.pair.first} on, before all injections"
        after, before = defaultdict(set), defaultdict(set)
        for edge in self.graph["edges"]:
            after[edge["source"]].add(edge["target"])
            before[edge["target"]].add(edge["source"])
        for name in sorted(nodes):
            if name in _reached(after[name], after):
                yield f"{name}: it is a consequence of itself"
        roots = {name for name, node in nodes.items() if node["state"] == "injected"}
        alarms = {name for name, node in nodes.items() if node["type"] in ("outcome", "finding")}
        if alarms != set(self.graph["alarms"]):
            yield f"the alarms are {sorted(alarms)}"
        for name in sorted(set(nodes) - _reached(roots, after)):
            yield f"{name}: no path leads there from an injection"
        for name in sorted(set(nodes) - _reached(alarms, before)):
            yield f"{name}: no path leads from there to an alarm"
        causes = {(fault["target"], fault["kind"]) for fault in self.label["faults"]}
        if self.label.get("causes"):  # some faults may be bystanders
            causes = {(one["component"], one["kind"]) for one in self.label["causes"]}
        targets = {target for target, _ in causes}
        if {nodes[root]["name"] for root in roots} != targets:
            yield f"the faults were injected into {sorted(targets)}"
        if {(one["component"], one["kind"]) for one in self.graph["root_causes"]} != causes:
            yield f"the root causes are {sorted(causes)}"

    # --- labels of the benchmark ---

    def _hidden(self, views: list[Instance]) -> Iterator[str]:
        """Whether the label of a set is what trace, twin and baseline say."""
        label, header = self.label, self.trace.rows[0]
        if header.get("seed") is not None or header["run"] != label["instance"]:
            yield "the header tells the run's seed or name"
        told = [*label["causes"], *label["bystanders"]]
        if sorted(one["number"] for one in told) != [*range(len(label["faults"]))]:
            yield "a fault is neither a cause nor a bystander"
        for one in told:
            acts = [act for act in label["injections"] if act["fault"] == one["number"]]
            if one["first_act"] != min(act["t"] for act in acts):
                yield f"{one['component']}: the first act is not at record {one['first_act']}"
            if one["step"] != self._step(min(acts, key=lambda act: act["t"])):
                yield f"{one['component']}: the first act is not in step {one['step']}"
        if len(told) == 1 and told[0]["first_effect"] != self.pair.first:
            yield f"run and twin differ from record {self.pair.first} on"
        if not all(one._is_good(one.ideal, None) for one in views):
            yield "the twin has no good end"
        if all(one.ended_well for one in views) is label["harm"]:
            yield "harm is not what the end of the run says"
        innocent = {fault["target"] for fault in label["innocent"]}
        if innocent & {fault["target"] for fault in label["faults"]}:
            yield "a decoy and a fault are at the same agent"

    def _step(self, act: Graph) -> int:
        starts = [row for row in self.trace.rows if row["kind"] == "start"]
        for number, row in enumerate(starts):
            if row["activation"] == act["activation"]:
                return number
        return max(0, sum(1 for row in starts if row["t"] <= act["t"]) - 1)

    def _is_good(self, end: Graph, usual: float | None) -> bool:
        """Whether a run has an answer that is valid, complete and not wrong."""
        if end["outcome"] != "submitted" or not end["valid"] or end["complete"] is False:
            return False
        rmse = end["rmse"]
        if rmse is None or (usual is not None and rmse <= usual):
            return True
        return rarity(self.pool, "outcome wrong", round(rmse, 6)) > level("wrong")


def _reached(names: set[str], ways: dict[str, set[str]]) -> set[str]:
    found, todo = set(), list(names)
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += ways.get(one, ())
    return found
