"""What notebooks show: small HTML tables of escaped text, in the page's own colours.

The picture of a whole run is made in `dig.traces.drawing`; this is what the core says of itself.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .explain import anything, value_text
from .plain import counted, name, one_line, safe_text
from .records import FATES

if TYPE_CHECKING:
    from .findings import Finding
    from .graph import InteractionGraph

MOST_ROWS = 30
STRIP_WIDTH, STRIP_HEIGHT = 280, 11

_CELL = ' style="text-align:left;padding:1px 12px 1px 0"'


class Strip(NamedTuple):
    """A cell that is a picture: the stretches of a lane in which something was going on."""

    stretches: Sequence[tuple[int, int]]
    title: str


Cell = str | Strip


def table(title: str, rows: Iterable[Sequence[Cell]], heads: Sequence[str] = ()) -> str:
    """A table as HTML, with a title above it."""
    head = "".join(f"<th{_CELL}>{_escaped(text)}</th>" for text in heads)
    body = "".join(_row(row) for row in rows)
    # Notebooks would take what stands between two dollar signs for a formula.
    return (
        f'<div class="tex2jax_ignore mathjax_ignore"><p><b>{_escaped(title)}</b></p>'
        f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}"
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(cells: Sequence[Cell]) -> str:
    shown = (_drawn(cell) if isinstance(cell, Strip) else _escaped(cell) for cell in cells)
    return f"<tr>{''.join(f'<td{_CELL}>{cell}</td>' for cell in shown)}</tr>"


def _escaped(text: str) -> str:
    return html.escape(safe_text(text))


def _drawn(strip: Strip) -> str:
    path = "".join(f"M{a} 1h{b - a}v{STRIP_HEIGHT - 2}h{a - b}z" for a, b in strip.stretches)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{STRIP_WIDTH}" height="{STRIP_HEIGHT}" '
        f'role="img"><title>{_escaped(strip.title)}</title><path d="M0 {STRIP_HEIGHT - 1}'
        f'h{STRIP_WIDTH}" stroke="currentColor" opacity="0.3"/>'
        f'<path d="{path}" fill="currentColor"/></svg>'
    )


def finding_html(finding: Finding) -> str:
    """A finding: what it is about, and what proves it."""
    stage = f" {name(finding.stage)}" if finding.stage is not None else ""
    title = f"{name(finding.pattern)}{stage} at {finding.ts:.1f} s (record {finding.t})"
    evidence = finding.evidence if isinstance(finding.evidence, dict) else {}
    rows = [(one_line(key), one_line(value_text(value)) or "-") for key, value in evidence.items()]
    return table(title, [("what", anything(finding.subject, None)), *rows])


def findings_html(findings: Sequence[Finding]) -> str:
    """Some findings: when each was raised, and what it is about."""
    rows: list[Sequence[Cell]] = [
        (name(one.pattern), f"{one.ts:.1f} s", anything(one.subject, one.evidence))
        for one in findings[:MOST_ROWS]
    ]
    if len(findings) > MOST_ROWS:
        rows.append((f"and {len(findings) - MOST_ROWS:,} more",))
    return table(counted(len(findings), "finding"), rows)


def graph_html(graph: InteractionGraph) -> str:
    """A graph: a row for each agent, with when it was active and what it did with its events."""
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
        *([f"shown: from record {h.whole_from:,} on"] if graph.has_let_go else ()),
        graph.finished.outcome if graph.finished else "going on",
    ]  # fmt: skip
    title = f"{one_line(graph.run.run, 80)}: {', '.join(amounts)}"
    heads = ("agent", "active, in logical time", "turns", *FATES, "in front of it")
    return table(title, rows, heads)


def _lanes(graph: InteractionGraph) -> dict[str, tuple[list[int], Counter[int]]]:
    """For each agent its activations, and how often it did what with an event."""
    h = graph.history
    names = dict.fromkeys((*graph.run.agents, *h.agent_names))
    lanes: dict[str, tuple[list[int], Counter[int]]] = {one: ([], Counter()) for one in names}
    for v in range(len(h.activation_ids)):
        turns, fates = lanes[h.agent(v)]
        turns.append(v)
        fates.update(edge.fate for edge in h.edges(v))
    return lanes


def _stretches(graph: InteractionGraph, turns: Iterable[int]) -> list[tuple[int, int]]:
    """When activations were going on, in pixels of a strip; what touches is one stretch."""
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
