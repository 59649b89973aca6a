"""Cut-outs of the graph for people and for networkx: at a time, raw or cleaned.

`graph_html` is the table that a notebook shows of a graph; `dig.show.figure` draws a whole run.

Nothing here is on the way of a run: a view reads the graph's history when it is asked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dig._util.html import MOST_ROWS, STRIP_WIDTH, Cell, Strip, table
from dig._util.text import counted, name, one_line

from .graph_state import GraphState
from .history import CONSUME, FINAL
from .records import FATES
from .turns import starts_turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import networkx as nx


@dataclass(frozen=True)
class GraphView:
    """A cut-out of a graph.

    Attributes:
        graph: The graph.
        until: The logical time at which the graph is shown; ``None``: as it is now.
        productive: Show the cleaned graph: productive edges and the nodes that they touch.
    """

    graph: GraphState
    until: int | None = None
    productive: bool = False

    def at(self, t: int) -> GraphView:
        """The same view, as the graph stood after the record at logical time `t`."""
        return replace(self, until=t)

    def cleaned(self) -> GraphView:
        """The same view, without delays, reroutes, discards and nodes touched by these alone."""
        return replace(self, productive=True)

    def nodes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Nodes with their attributes: events, then activations, each in order of appearance."""
        if not self.productive:
            yield from self._all_nodes()
            return
        touched = {node for source, target, _ in self.edges() for node in (source, target)}
        yield from ((node, attributes) for node, attributes in self._all_nodes() if node in touched)

    def edges(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Edges with their attributes: the generation edges, then the delivery edges."""
        h = self.graph.history
        for n in range(self._events()):
            if h.generator[n] >= 0:
                generator = h.activation_ids[h.generator[n]]
                yield generator, h.event_ids[n], {"kind": "generation", "t": h.t_gen[n]}
        for v in range(self._activations()):
            for event, fate in h.edges(v):
                if self._has_ended(v):
                    label: dict[str, Any] = {"fate": FATES[fate], "t": h.t_end[v]}
                else:
                    label = {"t": h.t_start[v]}
                if not self.productive or label.get("fate") == FATES[CONSUME]:
                    edge = {"kind": "delivery", **label}
                    yield h.event_ids[event], h.activation_ids[v], edge

    def to_networkx(self) -> nx.DiGraph[str]:
        """The view as a `networkx.DiGraph` with the attributes of `digmon graph --json`."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.nodes())
        graph.add_edges_from(self.edges())
        return graph

    def node_link(self) -> dict[str, Any]:
        """The view as networkx node-link data, with the edges under the key `edges`."""
        return {
            "directed": True,
            "multigraph": False,
            "graph": {},
            "nodes": [{**attributes, "id": node} for node, attributes in self.nodes()],
            "edges": [{**label, "source": s, "target": t} for s, t, label in self.edges()],
        }

    def _all_nodes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        h = self.graph.history
        for n in range(self._events()):
            yield (
                h.event_ids[n],
                {
                    "kind": "event",
                    "t_gen": h.t_gen[n],
                    "type": h.types.names[h.type_of[n]],
                    "final": bool(h.flags[n] & FINAL),
                },
            )
        for v in range(self._activations()):
            node = {"kind": "activation", "agent": h.agent(v), "t_start": h.t_start[v]}
            if self._has_ended(v):
                node["t_end"] = h.t_end[v]
            yield h.activation_ids[v], node

    def _events(self) -> int:
        return self._count(self.graph.history.t_gen)

    def _activations(self) -> int:
        return self._count(self.graph.history.t_start)

    def _count(self, times: Any) -> int:
        """The number of ascending times within the view."""
        return len(times) if self.until is None else bisect_right(times, self.until)

    def _has_ended(self, v: int) -> bool:
        t_end = self.graph.history.t_end[v]
        return t_end >= 0 and (self.until is None or t_end <= self.until)


def graph_html(graph: GraphState) -> str:
    """Render a graph as a table: a row for each agent, with turns and fates of events."""
    if graph.t < 0:
        return table("A graph without records", ())
    h = graph.history
    lanes = _lanes(graph)
    rows: list[Sequence[Cell]] = []
    for agent in list(lanes)[:MOST_ROWS]:
        turns, fates = lanes[agent]
        state = graph.agents.get(agent)
        number = sum(not graph.run.session or starts_turn(h, v) for v in turns)
        strip = Strip(_stretches(graph, turns), f"when {name(agent)} was active")
        did = [str(fates[fate]) for fate in range(len(FATES))]
        rows.append(
            (name(agent), strip, str(number), *did, str(len(state.buffer)) if state else "-")
        )
    if len(lanes) > MOST_ROWS:
        rows.append((f"and {len(lanes) - MOST_ROWS:,} more",))
    amounts = [
        counted(graph.event_count, "event"), counted(graph.activation_count, "activation"),
        counted(graph.t + 1, "record"), f"{len(graph.open_events()):,} open",
        *([f"shown: from record {h.whole_from:,} on"] if graph.has_evicted else ()),
        graph.finished.outcome if graph.finished else "going on",
    ]  # fmt: skip
    title = f"{one_line(graph.run.run, 80)}: {', '.join(amounts)}"
    heads = ("agent", "active, in logical time", "turns", *FATES, "in front of it")
    return table(title, rows, heads)


def _lanes(graph: GraphState) -> dict[str, tuple[list[int], Counter[int]]]:
    """Collect for each agent the activations, and the number of events by fate."""
    h = graph.history
    names = dict.fromkeys((*graph.run.agents, *h.agents.names))
    lanes: dict[str, tuple[list[int], Counter[int]]] = {agent: ([], Counter()) for agent in names}
    for v in range(len(h.activation_ids)):
        turns, fates = lanes[h.agent(v)]
        turns.append(v)
        fates.update(edge.fate for edge in h.edges(v))
    return lanes


def _stretches(graph: GraphState, turns: Iterable[int]) -> list[tuple[int, int]]:
    """Spans of activations in pixels of a strip; adjoining ones are merged."""
    h, length = graph.history, graph.t + 1
    stretches: list[tuple[int, int]] = []
    for v in turns:
        end = h.t_end[v] if h.t_end[v] >= 0 else graph.t
        a = h.t_start[v] * STRIP_WIDTH // length
        b = max(a + 1, (end + 1) * STRIP_WIDTH // length)
        if stretches and a <= stretches[-1][1]:
            first, last = stretches.pop()
            a, b = first, max(b, last)
        stretches.append((a, b))
    return stretches
