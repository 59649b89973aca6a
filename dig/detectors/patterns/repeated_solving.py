"""RSP, repeated subproblem solving: what was solved already is solved again.

Paper, section 5 (7).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dig._util.text import cut, name, names
from dig.detectors.explain import Story
from dig.detectors.finding import Explanation, Finding
from dig.graph.graph import InteractionGraph
from dig.graph.records import End, Record

NOBODY = -1


class RepeatedSolving:
    """Asks of every input who solved it before; the graph's history knows."""

    pattern = "RSP"
    kinds = (End,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise RSP for an activation that ended, if an earlier one has had an input of it."""
        assert graph.ended is not None
        h, v = graph.history, graph.ended.n
        shared = []
        for n in sorted(event.n for event in graph.ended.consumed):
            *earlier, latest = h.solvers(n) or [NOBODY]
            if earlier and latest == v:
                names = [h.activation_ids[w] for w in earlier]
                shared.append({"event": h.event_ids[n], "activations": names})
        if shared:
            subject, evidence = {"activation": graph.ended.id}, {"shared": shared}
            yield Finding("RSP", record.t, record.us, subject, evidence, why=explain)


def tell(subject: Any, evidence: Any) -> str:
    """RSP in words."""
    shared = [f"{name(s['event'])} after {names(s['activations'], 3)}" for s in evidence["shared"]]
    return f"activation {name(subject['activation'])} solved again {cut(shared)}"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """The way to what was solved twice, and on to both who did it."""
    story, again = Story(graph, finding), finding.subject["activation"]
    shared = finding.evidence["shared"][0]
    event, first = shared["event"], shared["activations"][0]
    text = (
        f"{tell(finding.subject, finding.evidence)}. "
        f"Both {name(first)} and {name(again)} consumed {name(event)} and made something of it."
    )
    return Explanation(text, (story.path_to(event, first), story.path_to(event, again)))
