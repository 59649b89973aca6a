"""ER, excessive rerouting: work is passed on and on, and nobody consumes it.

Paper, section 5 (5).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dig._util.text import counted, name, names
from dig.detectors.explain import Story
from dig.detectors.finding import Explanation, Finding
from dig.graph.graph import InteractionGraph
from dig.graph.records import End, Record
from dig.graph.state import by_number


class ExcessiveRerouting:
    """Raises ER at every reroute of an event beyond `reroute_limit`, over all its copies."""

    pattern = "ER"
    kinds = (End,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise ER for what the activation that ended has rerouted once too often."""
        assert isinstance(record, End)
        rerouted = [graph.event(f.event) for f in record.fates if f.fate == "reroute"]
        for event in sorted(rerouted, key=by_number):
            if event.work and len(event.reroutes) > graph.run.limits.reroute_limit:
                subject, path = {"event": event.id}, list(event.reroutes)
                yield Finding("ER", record.t, record.us, subject, {"path": path}, why=explain)


def tell(subject: Any, evidence: Any) -> str:
    """ER in words."""
    path = evidence["path"]
    times = counted(len(path), "time")
    return f"{name(subject['event'])} was passed on {times} and not consumed: by {names(path)}"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """The activations that passed the event on, in order."""
    story, event = Story(graph, finding), finding.subject["event"]
    hands = [v for v in story.seen_by(event) if story.fate(event, v) == "reroute"]
    hands.sort(key=lambda v: graph.history.t_end[graph.history.activation(v) or 0])
    text = f"{tell(finding.subject, finding.evidence)}."
    return Explanation(text, (story.path_to(event, *hands),))
