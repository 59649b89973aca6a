"""A monitor as one would write it first: keep the graph, and look at all of it.

For every event that is held it lists the open and the orphaned work (ET, OE), and for every
delivery it looks for events in the buffer that have no ancestor in common with it (CLA). It finds
what `dig` finds of these; `check` makes sure of that before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time_ns
from typing import Any

from dig.detectors.patterns.cross_lineage import CrossLineageAggregation
from dig.detectors.watch import Watch
from dig.graph.records import Deliver, Emit, End, Record, Redirect, Start

from .workload import Work


class Networkx:
    """A graph in networkx."""

    name = "networkx"

    def __init__(self) -> None:
        import networkx

        self._ancestors = networkx.ancestors
        self._graph: Any = networkx.DiGraph()

    def node(self, name: str) -> None:
        self._graph.add_node(name)

    def edge(self, source: str, target: str) -> None:
        self._graph.add_edge(source, target)

    def ancestors(self, name: str) -> set[str]:
        found: set[str] = self._ancestors(self._graph, name)
        return found

    def is_used(self, name: str) -> bool:
        return bool(self._graph.out_degree(name))


class Rustworkx:
    """A graph in rustworkx."""

    name = "rustworkx"

    def __init__(self) -> None:
        import rustworkx

        self._ancestors = rustworkx.ancestors
        self._graph = rustworkx.PyDiGraph(multigraph=False)
        self._index: dict[str, int] = {}

    def node(self, name: str) -> None:
        self._index[name] = self._graph.add_node(name)

    def edge(self, source: str, target: str) -> None:
        self._graph.add_edge(self._index[source], self._index[target], None)

    def ancestors(self, name: str) -> set[str]:
        found = self._ancestors(self._graph, self._index[name])
        return {self._graph[i] for i in found}

    def is_used(self, name: str) -> bool:
        return bool(self._graph.out_degree(self._index[name]))


class Links:
    """Nodes that know those before them, walked back each time.

    So does the reference implementation of the paper, HappyEureka/dig, by its description: its
    healers look at all events and at the lineage back to the roots after every activation, and at
    the lineage of all that lies in a mailbox after every delivery.
    """

    name = "links"

    def __init__(self) -> None:
        self._before: dict[str, list[str]] = {}
        self._used: set[str] = set()

    def node(self, name: str) -> None:
        self._before[name] = []

    def edge(self, source: str, target: str) -> None:
        self._before[target].append(source)
        self._used.add(source)

    def ancestors(self, name: str) -> set[str]:
        found: set[str] = set()
        stack = [*self._before[name]]
        while stack:
            one = stack.pop()
            if one not in found:
                found.add(one)
                stack += self._before[one]
        return found

    def is_used(self, name: str) -> bool:
        return name in self._used


BACKENDS: tuple[Callable[[], Any], ...] = (Links, Networkx, Rustworkx)


class Rescan:
    """Follows a run whose agents stay, and looks at everything for every event."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._work: list[str] = []
        self._by: dict[str, str | None] = {}
        self._copies: dict[str, set[str]] = {}
        self._flight: dict[str, set[str]] = {}
        self._buffers: dict[str, dict[str, None]] = {}
        self._inputs: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._used: set[str] = set()  # activations that have inputs

    def follow(self, record: Record) -> None:
        """Take a record into the graph."""
        match record:
            case Emit(event=name, by=by, to=to):
                self._by[name] = by
                self._copies[name] = set()
                self._flight[name] = set() if record.final else set(to)
                self._graph.node(name)
                if by != "system":
                    if not record.final:
                        self._work.append(name)
                    if by is not None:
                        self._graph.edge(by, name)
            case Deliver(event=name, to=str(agent)):
                self._flight[name].remove(agent)
                self._copies[name].add(agent)
                self._buffers.setdefault(agent, {})[name] = None
            case Start(activation=name, agent=agent, inputs=inputs):
                self._graph.node(name)
                self._inputs[name] = (agent, inputs)
            case End():
                self._end(record)
            case Redirect(event=name, to=to):
                self._flight[name] = set(to) - self._copies[name]

    def _end(self, end: End) -> None:
        agent, inputs = self._inputs.pop(end.activation)
        named = {fate.event: fate for fate in end.fates}
        for name in inputs:
            fate = named.get(name)
            is_note = self._by[name] == "system"
            done = fate.fate if fate is not None else "consume" if is_note else "delay"
            if done == "delay":
                continue
            del self._buffers[agent][name]
            self._copies[name].remove(agent)
            if fate is not None and done == "reroute":
                self._flight[name] |= set(fate.to) - self._copies[name]
            elif done == "consume" and not is_note:
                self._graph.edge(name, end.activation)
                self._used.add(end.activation)

    def open(self) -> list[str]:
        """Work that nobody has consumed and somebody can reach."""
        return [e for e in self._unused() if self._copies[e] or self._flight[e]]

    def orphans(self) -> list[str]:
        """Work that nobody has consumed and nobody can reach."""
        return [e for e in self._unused() if not (self._copies[e] or self._flight[e])]

    def _unused(self) -> list[str]:
        return [e for e in self._work if not self._graph.is_used(e)]

    def conflicts(self, event: str, agent: str) -> list[str]:
        """What lies beside an event and has no ancestor in common with it."""
        own = self._lineage(event)
        others = [other for other in self._buffers[agent] if other != event]
        return [o for o in others if own and (its := self._lineage(o)) and own.isdisjoint(its)]

    def _lineage(self, event: str) -> set[str]:
        if self._by[event] in (None, "system"):
            return set()
        found: set[str] = self._graph.ancestors(event) & self._used
        return found

    def look(self, record: Record) -> list[list[str]]:
        """What a monitor would look at after a record."""
        if isinstance(record, Emit):
            return [self.open(), self.orphans()]
        if isinstance(record, Deliver) and record.to is not None:
            return [self.conflicts(record.event, record.to)]
        return []


def check(backend: Callable[[], Any], records: list[Record]) -> None:
    """Make sure that a rescanning monitor finds what ours finds.

    Raises:
        AssertionError: It does not.
    """
    ours, theirs = Watch([CrossLineageAggregation()]), Rescan(backend())
    for record in records:
        found = [f for f in ours.feed(record) if f.stage == "delivery"]
        theirs.follow(record)
        seen = theirs.look(record)
        if isinstance(record, Emit):
            assert seen[0] == [event.id for event in ours.graph.open_events()], record
            assert seen[1] == list(ours.graph.orphans()), record
        elif seen:
            expected = found[0].evidence["conflicts"] if found else []
            assert sorted(seen[0]) == sorted(expected), record


def trace(activations: int, more: int, session: bool) -> tuple[list[Record], list[Record]]:
    """The records of a team's work up to some activations, and those of some more of them."""
    records: list[Record] = []
    work = Work(session=session, sink=records.append)
    while work.monitor.graph.activation_count < activations:
        work.step()
    cut = len(records)
    while work.monitor.graph.activation_count < activations + more:
        work.step()
    return records[:cut], records[cut:]


def rescanning(backend: Callable[[], Any], before: list[Record], after: list[Record]) -> float:
    """Microseconds of CPU for an event, of a monitor that has followed a run so far."""
    monitor = Rescan(backend())
    for record in before:
        monitor.follow(record)
    start = thread_time_ns()
    for record in after:
        monitor.follow(record)
        monitor.look(record)
    return (thread_time_ns() - start) / _events(after) / 1e3


def watching(before: list[Record], after: list[Record], watch: Watch) -> float:
    """The same for a watch."""
    for record in before:
        watch.feed(record)
    start = thread_time_ns()
    for record in after:
        watch.feed(record)
    return (thread_time_ns() - start) / _events(after) / 1e3


def _events(records: list[Record]) -> int:
    return sum(1 for record in records if isinstance(record, Emit))
