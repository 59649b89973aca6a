"""ET, early termination: an answer is submitted while work is open, or was lost on the way to it.

Paper, section 5 (1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dig._util.text import name, names
from dig.detectors.explain import Story
from dig.detectors.finding import Explanation, Finding
from dig.graph.coverage import answer, uncovered
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, Record
from dig.graph.state import by_number


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
                subject = {"event": record.event}
                yield Finding("ET", record.t, record.us, subject, evidence, why=explain)


def _missing(graph: InteractionGraph, n: int) -> tuple[list[str], list[str]]:
    """The open and the uncovered work that counts against a final event."""
    if not (graph.run.session or graph.run.limits.coverage):
        return [event.id for event in graph.open_events()], []
    behind = answer(graph, n)
    if graph.run.session:
        asked = graph.problems.asked(behind)
        if not asked:
            return [], []
        open_events = sorted(graph.problems.open_events(asked).values(), key=by_number)
    else:
        open_events = graph.open_events()
    lost = uncovered(graph, n, behind) if graph.run.limits.coverage else []
    ids = graph.history.event_ids
    return [event.id for event in open_events], [ids[e] for e in lost]


def tell(subject: Any, evidence: Any) -> str:
    """ET in words."""
    missing = {
        "still open": evidence["unresolved"],
        "lost on the way to it": evidence["uncovered"],
    }
    parts = [f"{what}: {names(events)}" for what, events in missing.items() if events]
    return f"answer {name(subject['event'])} was submitted too early; {'; '.join(parts)}"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """What became of the missing work, and the way to it."""
    story = Story(graph, finding)
    missing = [*finding.evidence["unresolved"], *finding.evidence["uncovered"]]
    text = f"{tell(finding.subject, finding.evidence)}. {story.last_seen_of(missing)}"
    return Explanation(text, story.to_all(missing))
