"""RSP, repeated subproblem solving: what was solved already is solved again.

Paper, section 5 (7).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

from dig.explain import Explanation, Story
from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.plain import cut, name, names
from dig.records import End, Record


class RepeatedSolving:
    """Remembers for every event which problem-reducing activations with an output consumed it."""

    pattern = "RSP"
    kinds = (End,)

    def __init__(self) -> None:
        """Begin with nothing solved."""
        self._first = array("i")  # event -> the first activation that solved it, or -1
        self._further: dict[int, list[int]] = {}  # event -> the others, where there are any

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise RSP for an activation that ended, if an earlier one has had an input of it."""
        assert isinstance(record, End)
        assert graph.ended is not None
        h, v = graph.history, graph.ended.n
        inputs = sorted(event.n for event in graph.ended.consumed)
        if not 0 < len(record.outputs) <= len(inputs):
            return
        missing = len(h.generator) - len(self._first)
        self._first.extend([-1] * missing)
        names = h.activation_ids
        shared = [
            {"event": h.event_ids[n], "activations": [names[w] for w in earlier]}
            for n in inputs
            if (earlier := self._solvers(n))
        ]
        for n in inputs:
            self._remember(n, v)
        if shared:
            subject, evidence = {"activation": record.activation}, {"shared": shared}
            yield Finding("RSP", record.t, record.us, subject, evidence, why=explain)

    def _solvers(self, n: int) -> list[int]:
        first = self._first[n]
        return [] if first < 0 else [first, *self._further.get(n, ())]

    def _remember(self, n: int, v: int) -> None:
        if self._first[n] < 0:
            self._first[n] = v
        else:
            self._further.setdefault(n, []).append(v)


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
