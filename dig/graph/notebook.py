"""A graph as HTML for notebooks.

The picture of a whole run is made in `dig.show.figure`; this module needs the core alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from dig._util.html import MOST_ROWS, STRIP_WIDTH, Cell, Strip, table
from dig._util.text import counted, name, one_line

from .records import FATES
from .state import GraphState


def graph_html(graph: GraphState) -> str:
    """A graph as a table: a row for each agent, with its active times and its fates."""
    if graph.t < 0:
        return table("A graph without records", ())
    h = graph.history
    lanes = _lanes(graph)
    rows: list[Sequence[Cell]] = []
    for agent in list(lanes)[:MOST_ROWS]:
        turns, fates = lanes[agent]
        state = graph.agents.get(agent)
        strip = Strip(_stretches(graph, turns), f"when {name(agent)} was active")
        did = [str(fates[fate]) for fate in range(len(FATES))]
        rows.append(
            (name(agent), strip, str(len(turns)), *did, str(len(state.buffer)) if state else "-")
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
    """For each agent its activations, and how often it chose each fate."""
    h = graph.history
    names = dict.fromkeys((*graph.run.agents, *h.agent_names))
    lanes: dict[str, tuple[list[int], Counter[int]]] = {one: ([], Counter()) for one in names}
    for v in range(len(h.activation_ids)):
        turns, fates = lanes[h.agent(v)]
        turns.append(v)
        fates.update(edge.fate for edge in h.edges(v))
    return lanes


def _stretches(graph: GraphState, turns: Iterable[int]) -> list[tuple[int, int]]:
    """The times of activations, in pixels of a strip; times that touch are one stretch."""
    h, whole = graph.history, graph.t + 1
    found: list[tuple[int, int]] = []
    for v in turns:
        end = h.t_end[v] if h.t_end[v] >= 0 else graph.t
        a = h.t_start[v] * STRIP_WIDTH // whole
        b = max(a + 1, (end + 1) * STRIP_WIDTH // whole)
        if found and a <= found[-1][1]:
            first, last = found.pop()
            a, b = first, max(b, last)
        found.append((a, b))
    return found
