"""Runs that behave alike and runs that nearly do, and a slow way to tell them apart.

`python -m tests.behaviours --seed 1 --count 1000` compares as many of each as it is told to.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import networkx as nx
from networkx.algorithms.isomorphism import DiGraphMatcher

from dig.errors import RuleError
from dig.graph.behaviour import (
    ActivationEnd,
    ActivationStart,
    Behaviour,
    BehaviourStep,
    Generation,
    same_behaviour,
    signature,
)
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from dig.graph.records import FateName

from .oracle import Row
from .random_traces import SIDE_KINDS, random_trace

# --- runs that behave alike ---


def bare(rows: Sequence[Row]) -> list[Row]:
    """A trace without the rows that change no graph."""
    return numbered([row for row in rows if row["kind"] not in SIDE_KINDS])


def numbered(rows: Sequence[Row]) -> list[Row]:
    """The rows in this order, with numbers and times that go with it."""
    times = sorted(float(row["ts"]) for row in rows)
    return [{**row, "t": t, "ts": times[t]} for t, row in enumerate(rows)]


def graph_of(rows: Sequence[Row]) -> InteractionGraph:
    return InteractionGraph.of(map(decode, rows))


def behaviour_of(rows: Sequence[Row]) -> Behaviour:
    return Behaviour.of(graph_of(rows))


def renamed(rows: Sequence[Row], rng: random.Random) -> list[Row]:
    """The same trace with other names, payloads, types and times."""
    agents = {a for r in rows for a in (*r.get("agents", ()), r.get("agent"), *_recipients(r)) if a}
    ids = {r[k] for r in rows for k in ("event", "activation") if k in r}
    ids |= {output for row in rows for output in row.get("outputs", ())}
    people = dict(zip(sorted(agents), rng.sample(range(10_000), len(agents)), strict=True))
    things = dict(zip(sorted(ids), rng.sample(range(10_000), len(ids)), strict=True))
    return [_renamed(row, people, things, rng) for row in rows]


def _recipients(row: Row) -> Iterator[str]:
    to = row.get("to")
    yield from to if isinstance(to, list) else [to] if to else []
    yield from (agent for fate in row.get("fates", ()) for agent in fate.get("to", ()))


def _renamed(row: Row, people: dict[str, int], things: dict[str, int], rng: random.Random) -> Row:
    def who(value: Any) -> Any:
        if isinstance(value, list):
            return [who(one) for one in value]
        return value if value is None else f"P{people[value]}"

    def what(value: Any) -> Any:
        if isinstance(value, list):
            return [what(one) for one in value]
        return value if value in (None, "system") else f"x{things[value]}"

    new = {**row, "ts": float(row["ts"]) * 3}
    for key in ("agents", "agent", "to"):
        if key in row:
            new[key] = who(row[key])
    for key in ("event", "activation", "by", "because", "inputs", "outputs"):
        if key in row:
            new[key] = what(row[key])
    if "fates" in row:
        new["fates"] = [
            {**fate, "event": what(fate["event"])}
            | ({"to": who(fate["to"])} if "to" in fate else {})
            for fate in row["fates"]
        ]
    if row["kind"] == "emit":
        new["payload"] = rng.random()
        new["type"] = "notice" if row["type"] == "notice" else rng.choice(["problem", "other"])
    return new


def commuted(rows: Sequence[Row], rng: random.Random, swaps: int) -> tuple[list[Row], int]:
    """The same trace after some swaps of neighbours that do not need each other's order.

    A swap that the rules of the graph refuse is none. Returns the number of those that were made.
    """
    now, made = list(rows), 0
    for _ in range(swaps):
        i = rng.randrange(1, max(2, len(now) - 1))
        tried = numbered([*now[:i], *now[i : i + 2][::-1], *now[i + 2 :]])
        try:
            graph_of(tried)
        except RuleError:
            continue
        now, made = tried, made + 1
    return now, made


# --- runs that nearly behave alike ---


def relabelled(behaviour: Behaviour, rng: random.Random) -> Behaviour | None:
    """The behaviour with the fates of two edges swapped, if it has two different ones."""
    edges = [(v, i) for v, fates in behaviour.fates.items() for i in range(len(fates))]
    kinds = {edge: behaviour.fates[edge[0]][edge[1]] for edge in edges}
    pairs = [(a, b) for a in edges for b in edges if kinds[a] < kinds[b]]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    return _with_fates(behaviour, {a: kinds[b], b: kinds[a]})


def _with_fates(behaviour: Behaviour, new: dict[tuple[int, int], FateName]) -> Behaviour:
    steps: list[BehaviourStep] = []
    for step in behaviour.steps:
        if isinstance(step, ActivationEnd):
            fates = [new.get((step.activation, i), fate) for i, fate in enumerate(step.fates)]
            step = step._replace(fates=tuple(fates))
        steps.append(step)
    return Behaviour(steps)


def moved(behaviour: Behaviour, rng: random.Random) -> Behaviour | None:
    """The behaviour with one edge moved to another event that was there by then."""
    choices = []
    events = activations = 0
    for number, step in enumerate(behaviour.steps):
        if isinstance(step, ActivationStart):
            others = [e for e in range(events) if e not in step.events]
            choices += [(number, activations, e, other) for e in step.events for other in others]
            activations += 1
        events += isinstance(step, Generation)
    if not choices:
        return None
    number, v, old, new = rng.choice(choices)
    steps = list(behaviour.steps)
    beginning = steps[number]
    assert isinstance(beginning, ActivationStart)
    seen = [new if event == old else event for event in beginning.events]
    order = sorted(range(len(seen)), key=seen.__getitem__)
    steps[number] = beginning._replace(events=tuple(seen[i] for i in order))
    for i, step in enumerate(steps):
        if isinstance(step, ActivationEnd) and step.activation == v:
            steps[i] = step._replace(fates=tuple(step.fates[k] for k in order))
    return Behaviour(steps)


# --- the slow way ---


def networkx_graph(behaviour: Behaviour) -> nx.DiGraph[str]:
    """A behaviour as the definition has it: agents are nodes, and order is an edge of each pair."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    events = 0
    turns: dict[int, list[str]] = {}
    for step in behaviour.steps:
        if isinstance(step, Generation):
            graph.add_node(f"e{events}", looks=f"event {step.origin} {step.marks}")
            if step.by is not None:
                graph.add_edge(f"v{step.by}", f"e{events}", looks="generation")
            events += 1
        elif isinstance(step, ActivationStart):
            v = f"v{sum(map(len, turns.values()))}"
            graph.add_node(v, looks="activation")
            graph.add_node(f"a{step.agent}", looks="agent")
            graph.add_edge(f"a{step.agent}", v, looks="acts")
            for before in turns.setdefault(step.agent, []):
                graph.add_edge(before, v, looks="before")
            turns[step.agent].append(v)
            graph.add_edges_from((f"e{e}", v, {"looks": "sees"}) for e in step.events)
        else:
            v = f"v{step.activation}"
            graph.nodes[v]["looks"] = "ended activation"
            seen = behaviour.beginnings[step.activation].events
            for event, fate in zip(seen, step.fates, strict=True):
                graph.edges[f"e{event}", v]["looks"] = fate
    return graph


def are_alike(a: Behaviour, b: Behaviour) -> bool:
    """Whether two behaviours are the same causally, by the matcher of networkx."""

    def same(one: dict[str, str], other: dict[str, str]) -> bool:
        return one["looks"] == other["looks"]

    one, other = networkx_graph(a), networkx_graph(b)
    matcher = DiGraphMatcher(one, other, node_match=same, edge_match=same)
    return bool(matcher.is_isomorphic())


# --- many of them ---


def storm(seed: int, count: int) -> Counter[str]:
    """Compare many runs with others, and fail at the first wrong verdict."""
    rng = random.Random(seed)
    done: Counter[str] = Counter()
    while min(done[kind] for kind in ("renamed", "commuted", "relabelled", "moved")) < count:
        rows = bare(random_trace(rng, length=rng.choice([10, 20, 30, 45])))
        behaviour = behaviour_of(rows)
        check_same(behaviour, behaviour_of(renamed(rows, rng)), strict=True)
        done["renamed"] += 1
        other, swaps = commuted(rows, rng, 40)
        check_same(behaviour, behaviour_of(renamed(other, rng)), strict=False)
        done["commuted"] += swaps
        for kind, change in (("relabelled", relabelled), ("moved", moved)):
            changed = change(behaviour, rng)
            if changed is not None:
                check_verdict(behaviour, changed)
                done[kind] += 1
                done[f"{kind}, and alike again"] += are_alike(behaviour, changed)
    return done


def check_same(a: Behaviour, b: Behaviour, *, strict: bool) -> None:
    """Two runs that behave alike are found to."""
    for notion in {strict, False}:
        assert same_behaviour(a, b, strict=notion), (a.steps, b.steps)
        assert signature(a, strict=notion) == signature(b, strict=notion)


def check_verdict(a: Behaviour, b: Behaviour) -> None:
    """Two runs that differ by an edge or a label are told apart as the slow way does."""
    alike = are_alike(a, b)
    assert same_behaviour(a, b) == alike, (a.steps, b.steps)
    assert not same_behaviour(a, b, strict=True)
    assert not alike or signature(a) == signature(b)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    chosen = parser.parse_args()
    for kind, number in storm(chosen.seed, chosen.count).items():
        print(f"{number:>7,} {kind}")
