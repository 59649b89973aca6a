"""`python -m bench.incidents [made|graphs|speed] [--seeds=1,2,3]`: how right investigations are.

made: incidents of eleven mechanisms in made systems of services, with decoys, hidden edges, gaps.
graphs: the graphs in the file that DIG_ITBENCH_GRAPHS names; without one they are skipped.
speed: the processor time of 300 steps over 10,000 entities.

The rules were written with seeds 1 to 3 in view; 1001 to 1003 are for evaluation alone.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from dig.lab.investigate.beliefs import Alert
from dig.lab.investigate.controller import Course
from dig.lab.investigate.investigation import Investigation, investigate
from dig.lab.investigate.rules import ServiceRules
from dig.lab.investigate.scoring import Agreement
from dig.lab.investigate.snapshot import EntityRow, EvidenceLine, Snapshot, Topology, TopologyEdge

DESIGN = (1, 2, 3)
PER_SEED = 200
ORDERS = 3
GRAPHS = "DIG_ITBENCH_GRAPHS"

HIDDEN, GAP, DECOY_CHANGE, LATE_CHANGE, OWN_ERROR = 0.15, 0.05, 0.08, 0.3, 0.4
PASSES_ON = 0.85


@dataclass
class System:
    """A made system: services in layers, their pods, nodes and configurations, and an incident."""

    chance: random.Random
    calls: dict[str, list[str]] = field(default_factory=dict)
    layers: list[list[str]] = field(default_factory=list)
    edges: list[TopologyEdge] = field(default_factory=list)
    lines: list[EvidenceLine] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    failed_at: dict[str, float] = field(default_factory=dict)

    @classmethod
    def drawn(cls, chance: random.Random) -> System:
        made = cls(chance)
        number = 0
        for _ in range(chance.randint(3, 5)):
            width = chance.randint(2, 5)
            made.layers.append([f"svc-{number + n}" for n in range(width)])
            number += width
        nodes = [f"node-{n}" for n in range(chance.randint(2, 3))]
        for depth, layer in enumerate(made.layers):
            for service in layer:
                below = made.layers[depth + 1] if depth + 1 < len(made.layers) else []
                some = chance.sample(below, min(len(below), chance.randint(1, 3)))
                made.calls[service] = some
                made.kinds[service] = "service"
                made._own(service, chance.choice(nodes))
                made.edges += [TopologyEdge(service, one, "calls") for one in some]
        made.kinds |= dict.fromkeys(nodes, "node")
        return made

    def _own(self, service: str, node: str) -> None:
        pod, config = service.replace("svc", "pod"), service.replace("svc", "cfg")
        self.kinds |= {pod: "pod", config: "config"}
        self.edges += [
            TopologyEdge(service, pod, "has"),
            TopologyEdge(pod, node, "runs on"),
            TopologyEdge(pod, config, "uses"),
        ]

    @property
    def services(self) -> list[str]:
        return [*self.calls]

    def callers(self, service: str) -> list[str]:
        return [one for one, some in self.calls.items() if service in some]

    def depth(self, service: str) -> int:
        return next(n for n, layer in enumerate(self.layers) if service in layer)

    def deep(self) -> str:
        """A service that others call."""
        return self.chance.choice([one for one in self.services if self.callers(one)])

    def saw(self, entity: str, ts: float, kind: str, about: str | None = None,
            text: str = "", ratio: float | None = None) -> None:  # fmt: skip
        value = None if ratio is None else 100 * ratio
        usual = None if ratio is None else 100.0
        self.lines.append(EvidenceLine(entity, ts, kind, None, about, text, value, usual))

    def fails(self, service: str, ts: float, *, spare: Iterable[str] = ()) -> None:
        """The callers of a failing service fail one after the other, upwards."""
        self.failed_at.setdefault(service, ts)
        ahead = [service]
        while ahead:
            callee = ahead.pop(0)
            for caller in self.callers(callee):
                if caller in spare or self.chance.random() > PASSES_ON:
                    continue
                at = self.failed_at[callee] + self.chance.uniform(1, 20)
                self.saw(caller, at, "failed-call", callee, "timeout")
                if caller not in self.failed_at:
                    self.failed_at[caller] = at
                    ahead.append(caller)
                    if self.chance.random() < OWN_ERROR:
                        self.saw(caller, at + 5, "error", text="requests fail")

    def surges(self, path: Sequence[str], ts: float) -> None:
        """More traffic goes down a path of calls."""
        for n, (caller, callee) in enumerate(pairwise(path)):
            ratio = 1.2 + 0.06 * n + self.chance.uniform(0, 0.05)
            self.saw(callee, ts + n, "traffic", caller, "requests a second", ratio)

    def down_from(self, service: str) -> list[str]:
        path = [service]
        while self.calls[path[-1]]:
            path.append(self.chance.choice(self.calls[path[-1]]))
        return path


Mechanism = Callable[[System, float], set[str]]
"""Plays an incident that begins at a time, and returns its causes."""


def bad_change(made: System, t0: float) -> set[str]:
    root = made.deep()
    made.saw(root, t0 - made.chance.uniform(5, 120), "change", text="new version")
    made.saw(root, t0, "error", text="exception")
    made.fails(root, t0)
    return {root}


def leak(made: System, t0: float) -> set[str]:
    root = made.deep()
    made.saw(root, t0, "exhausted", text="out of memory")
    made.fails(root, t0)
    return {root}


def surge(made: System, t0: float) -> set[str]:
    path = made.down_from(made.chance.choice(made.layers[0]))
    made.saw(path[0], t0 - 10, "log", text="a campaign has begun")
    made.saw(path[0], t0 - 9, "traffic", text="requests a second", ratio=1.2)
    made.surges(path, t0 - 8)
    made.saw(path[-1], t0, "exhausted", text="no connections left")
    made.fails(path[-1], t0)
    return {path[0]}


def broken_part(made: System, t0: float) -> set[str]:
    service = made.deep()
    part = service.replace("svc", made.chance.choice(["pod", "cfg"]))
    kind = "change" if part.startswith("cfg") else "event"
    made.saw(part, t0 - 5, kind, text="killed" if kind == "event" else "edited")
    made.saw(service, t0, "error", part, "part is not ready")
    made.fails(service, t0)
    return {part}


def retry_storm(made: System, t0: float) -> set[str]:
    """A client is changed to call more often; what it calls is used up, and other callers fail."""
    path = made.down_from(made.chance.choice([one for one in made.services if made.calls[one]]))
    made.saw(path[0], t0 - 30, "change", text="retries")
    made.surges(path, t0 - 8)
    made.saw(path[-1], t0, "exhausted", text="threads")
    made.fails(path[-1], t0)
    return {path[0]}


def expired(made: System, t0: float) -> set[str]:
    """Nothing changed; a certificate is too old. Not among the mechanisms of the rules."""
    root = made.deep()
    made.saw(root, t0, "error", text="certificate has expired")
    made.fails(root, t0)
    return {root}


def slow(made: System, t0: float) -> set[str]:
    """The cause has no error, only an unusual metric. Not among the mechanisms of the rules."""
    root = made.deep()
    made.saw(root, t0, "metric", text="seconds a request", ratio=made.chance.uniform(3, 9))
    made.fails(root, t0)
    return {root}


def network_policy(made: System, t0: float) -> set[str]:
    """A policy cuts one caller off; the callee is well. Not among the mechanisms of the rules."""
    callee = made.deep()
    caller = made.chance.choice(made.callers(callee))
    policy = "policy-1"
    made.kinds[policy] = "policy"
    made.edges.append(TopologyEdge(policy, caller, "applies to"))
    made.saw(policy, t0 - 4, "change", text="egress is denied")
    made.saw(caller, t0, "failed-call", callee, "connection refused")
    made.saw(caller, t0 + 1, "error", policy, "denied by policy")
    made.failed_at[callee] = t0
    made.fails(caller, t0)
    return {policy}


def node_pressure(made: System, t0: float) -> set[str]:
    """A pod uses up its node; the other pods there fail. Not among the mechanisms of the rules."""
    on = {edge.source: edge.target for edge in made.edges if edge.kind == "runs on"}
    root = made.chance.choice(sorted(on))
    others = [pod for pod in sorted(on) if on[pod] == on[root] and pod != root]
    made.saw(root, t0 - 20, "metric", text="memory", ratio=6.0)
    made.saw(on[root], t0 - 5, "event", root, "memory pressure")
    for pod in made.chance.sample(others, min(2, len(others))):
        service = pod.replace("pod", "svc")
        made.saw(pod, t0, "event", on[root], "evicted")
        made.saw(service, t0 + 2, "error", pod, "no pod is ready")
        made.fails(service, t0 + 2)
    return {root} if others else broken_part(made, t0)


def two_causes(made: System, t0: float) -> set[str]:
    """Two incidents at once. Not among the mechanisms of the rules."""
    return bad_change(made, t0) | leak(made, t0 + 40)


def unnamed_part(made: System, t0: float) -> set[str]:
    """A part below a service is changed, and no alarm and no error names it."""
    service = made.deep()
    part = service.replace("svc", made.chance.choice(["pod", "cfg"]))
    if made.chance.random() < 1 / 3:
        on = {edge.source: edge.target for edge in made.edges if edge.kind == "runs on"}
        part = on[service.replace("svc", "pod")]
    made.saw(part, t0 - made.chance.uniform(2, 60), "change", text="edited")
    if made.chance.random() < 2 / 3:
        made.saw(service, t0, "error", text="requests fail")
    made.fails(service, t0)
    return {part}


MECHANISMS: tuple[Mechanism, ...] = (
    bad_change, leak, surge, broken_part, retry_storm, expired, slow, network_policy,
    node_pressure, two_causes, unnamed_part,
)  # fmt: skip


@dataclass(frozen=True)
class Incident:
    """A made incident."""

    mechanism: str
    snapshot: Snapshot
    roots: frozenset[str]


def incident(seed: int, number: int) -> Incident:
    """The incident with a number; the same one for the same seed."""
    chance = random.Random(f"incident/{seed}/{number}")
    mechanism = MECHANISMS[number % len(MECHANISMS)]
    while True:
        made = System.drawn(chance)
        t0 = 1000.0
        roots = mechanism(made, t0)
        failed = [one for one in made.failed_at if one in made.calls and one not in roots]
        if failed:
            break
    _distract(made, t0, roots)
    alerts = _alerts(made, failed)
    silent = {one for one in failed if chance.random() < GAP}
    edges = [one for one in made.edges if one.kind != "calls" or chance.random() > HIDDEN]
    entities = [EntityRow(one, kind) for one, kind in made.kinds.items()]
    lines = [one for one in made.lines if one.entity not in silent]
    chance.shuffle(lines)
    snapshot = Snapshot(f"{seed}-{number}", Topology(entities, edges), alerts, lines)
    return Incident(mechanism.__name__, snapshot, frozenset(roots))


def _alerts(made: System, failed: Sequence[str]) -> list[Alert]:
    """One to three of those that fail, the upper ones more often; sometimes one on nothing."""
    chance = made.chance
    upper = sorted(failed, key=lambda one: (made.depth(one), one))
    some = chance.sample(upper, 1) if len(upper) < 3 else upper[: chance.randint(1, 3)]
    alerts = [Alert(one, made.failed_at[one] + 30, "errors") for one in some]
    if chance.random() < 0.05:
        alerts.append(Alert("nothing-known", 1010.0, "watchdog"))
    return alerts


def _distract(made: System, t0: float, roots: set[str]) -> None:
    """Changes without effect, changes of victims, and noise."""
    chance = made.chance
    for entity in made.kinds:
        if entity in roots:
            continue
        if entity not in made.failed_at and chance.random() < DECOY_CHANGE:
            made.saw(entity, t0 - chance.uniform(1, 200), "change", text="scaled")
        if entity in made.failed_at and chance.random() < LATE_CHANGE:
            made.saw(entity, made.failed_at[entity] + 60, "change", text="restarted by hand")
        if chance.random() < 0.3:
            made.saw(entity, t0 + chance.uniform(-100, 100), "log", text="nothing in particular")
        if chance.random() < 0.3:
            made.saw(entity, t0, "metric", text="processor", ratio=chance.uniform(0.7, 1.4))


# --- measuring ---


def last_change(one: Incident) -> set[str]:
    """Floor: the entity that was changed last before the first alarm."""
    window = one.snapshot.window
    first = one.snapshot.alerts()[0].ts
    changes = [
        (fact.ts, entity)
        for entity in one.snapshot.entities()
        for fact in one.snapshot.evidence(entity, window)
        if fact.type == "change" and fact.ts <= first
    ]
    return {max(changes)[1]} if changes else set()


def earliest_evidence(one: Incident) -> set[str]:
    """Floor: the entity with the earliest error, event or exhaustion."""
    window = one.snapshot.window
    found = [
        (fact.ts, entity)
        for entity in one.snapshot.entities()
        for fact in one.snapshot.evidence(entity, window)
        if fact.type in ("error", "event", "exhausted", "failed-call")
    ]
    return {min(found)[1]} if found else set()


def f1(answer: Iterable[str], roots: Iterable[str]) -> float:
    return Agreement.of({*answer}, {*roots}).f1


def made_incidents(seeds: Sequence[int]) -> list[str]:
    rows: dict[str, dict[str, list[float]]] = {}
    same = total = 0
    began = time.process_time()
    for one in (incident(seed, n) for seed in seeds for n in range(PER_SEED)):
        rules = ServiceRules()
        found = investigate(one.snapshot, rules)
        without = investigate(one.snapshot, rules, Course(has_messages=False))
        scores = {
            "with messages": f1(found.answer, one.roots),
            "without": f1(without.answer, one.roots),
            "last change": f1(last_change(one), one.roots),
            "earliest evidence": f1(earliest_evidence(one), one.roots),
        }
        for row in (one.mechanism, "all"):
            for what, value in scores.items():
                rows.setdefault(row, {}).setdefault(what, []).append(value)
        for order in range(1, ORDERS + 1):
            again = investigate(one.snapshot, rules, Course(order=order))
            same += _same(found, again)
            total += 1
    columns = list(rows["all"])
    heads = [f"F1 of roots, seeds {', '.join(map(str, seeds))}", "incidents", *columns]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for row, some in rows.items():
        values = " | ".join(f"{fmean(some[one]):.3f}" for one in columns)
        lines.append(f"| {row.replace('_', ' ')} | {len(some[columns[0]])} | {values} |")
    lines.append("")
    lines.append(f"Another order of the alarms gives the same answer in {same} of {total} runs "
                 f"({same / total:.1%}).")  # fmt: skip
    lines.append(f"{time.process_time() - began:.1f} s of processor time.")
    return lines


def _same(a: Investigation, b: Investigation) -> bool:
    return {*a.answer} == {*b.answer}


def graphs() -> list[str]:
    """The frontier on the edges of graphs; the evidence is made of the edges alone."""
    path = os.environ.get(GRAPHS)
    if not path:
        return [f"skipped: {GRAPHS} names no file of graphs"]
    scores: dict[bool, list[float]] = {True: [], False: []}
    for graph in json.loads(Path(path).read_text("utf-8"))["graphs"]:
        known = _of_graph(graph)
        names = {known.canonical(one) for one in graph["roots"]}
        for messages in scores:
            found = investigate(known, ServiceRules(), Course(has_messages=messages))
            scores[messages].append(f1(found.answer, names))
    return [
        f"{len(scores[True])} graphs read; F1 of the frontier {fmean(scores[True]):.3f}, "
        f"without messages {fmean(scores[False]):.3f}"
    ]


def _of_graph(graph: Mapping[str, object]) -> Snapshot:
    """Entities that only cause have a change; each effect is a failed call of its cause."""
    rows: Sequence[Mapping[str, str]] = graph["edges"]  # type: ignore[assignment]
    alerts: Sequence[Mapping[str, str]] = graph["alerts"]  # type: ignore[assignment]
    entities: Sequence[Mapping[str, str]] = graph["entities"]  # type: ignore[assignment]
    targets = {row["target"] for row in rows}
    lines = [EvidenceLine(row["target"], 100.0, "failed-call", about=row["source"]) for row in rows]
    lines += [
        EvidenceLine(one, 90.0, "change")
        for one in sorted({row["source"] for row in rows} - targets)
    ]
    topology = Topology(
        [EntityRow(one["id"], one["kind"]) for one in entities],
        [TopologyEdge(row["target"], row["source"], "calls") for row in rows],
    )
    return Snapshot(
        str(graph["id"]), topology,
        [Alert(one["entity"] or "", 110.0, one["name"]) for one in alerts], lines,
    )  # fmt: skip


def speed() -> list[str]:
    """A chain of 10,000 entities that fail one after the other."""
    names = [f"svc-{n}" for n in range(10_000)]
    edges = [TopologyEdge(a, b, "calls") for a, b in pairwise(names)]
    lines = [
        EvidenceLine(a, 1000.0 - n, "failed-call", about=b)
        for n, (a, b) in enumerate(pairwise(names))
    ]
    topology = Topology([EntityRow(one, "service") for one in names], edges)
    known = Snapshot("chain", topology, [Alert(names[0], 1000.0, "errors")], lines)
    began = time.process_time()
    found = investigate(known, ServiceRules(), Course(window=(0.0, 2000.0)))
    took = time.process_time() - began
    return [f"{found.steps} steps over {len(names):,} entities: {took:.2f} s of processor time"]


def main() -> None:
    names = [name for name in sys.argv[1:] if not name.startswith("--")]
    given = next((one.partition("=")[2] for one in sys.argv if one.startswith("--seeds=")), "")
    seeds = tuple(int(one) for one in given.split(",")) if given else DESIGN
    benches: dict[str, Callable[[], list[str]]] = {
        "made": lambda: made_incidents(seeds), "graphs": graphs, "speed": speed,
    }  # fmt: skip
    for name in names or benches:
        print("\n".join(benches[name]()), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
