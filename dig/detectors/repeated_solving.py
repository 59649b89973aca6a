"""RSP, repeated subproblem solving: what was solved already is solved again.

Paper, section 5 (7).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.records import End, Record


class RepeatedSolving:
    """Remembers for every event which problem-reducing activations with an output consumed it."""

    pattern = "RSP"
    kinds = (End,)

    def __init__(self) -> None:
        """Begin with nothing solved."""
        self._first = array("q")  # event -> the first activation that solved it, or -1
        self._further: dict[int, list[int]] = {}  # event -> the others, where there are any

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise RSP for an activation that ended, if an earlier one has had an input of it."""
        assert isinstance(record, End)
        assert graph.ended is not None
        h, v = graph.history, graph.ended.n
        inputs = sorted(graph.ended.consumed)
        if not 0 < len(record.outputs) <= len(inputs):
            return
        missing = len(h.event_ids) - len(self._first)
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
            subject = {"activation": record.activation}
            yield Finding("RSP", record.t, record.us, subject, {"shared": shared})

    def _solvers(self, n: int) -> list[int]:
        first = self._first[n]
        return [] if first < 0 else [first, *self._further.get(n, ())]

    def _remember(self, n: int, v: int) -> None:
        if self._first[n] < 0:
            self._first[n] = v
        else:
            self._further.setdefault(n, []).append(v)
