"""ET, early termination: an answer is submitted while work is open, or was lost on the way to it.

Paper, section 5 (1).
"""

from __future__ import annotations

from collections.abc import Iterator

from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.lineage import answer, uncovered
from dig.records import Emit, Record


class EarlyTermination:
    """Looks at every final event when it is generated."""

    pattern = "ET"
    kinds = (Emit,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise ET for a final event with open or uncovered work."""
        if isinstance(record, Emit) and record.final:
            n = graph.event(record.event).n
            unresolved, lost = _missing(graph, n)
            if unresolved or lost:
                evidence = {"unresolved": unresolved, "uncovered": lost}
                yield Finding("ET", record.t, record.us, {"event": record.event}, evidence)


def _missing(graph: InteractionGraph, n: int) -> tuple[list[str], list[str]]:
    """The open and the uncovered work that counts against a final event."""
    open_events = graph.open_events()
    if not (graph.run.session or graph.run.limits.coverage):
        return [event.id for event in open_events], []
    behind = answer(graph, n)
    if graph.run.session:
        asked = graph.problems.asked(behind)
        if not asked:
            return [], []
        open_events = [e for e in open_events if not e.sources.isdisjoint(asked)]
    lost = uncovered(graph, n, behind) if graph.run.limits.coverage else []
    ids = graph.history.event_ids
    return [event.id for event in open_events], [ids[e] for e in lost]
