"""Usual findings of a team: findings that good runs of it raise as well are no alarm.

The `run` record may carry the counts of good runs (`dig.graph.records.Usual`). The j-th finding of
a pattern is usual if good runs had as many of them often enough.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from itertools import count
from typing import Any

from dig._util.ranges import NOTHING
from dig.graph.graph import InteractionGraph
from dig.graph.records import Usual

LEAST_RUNS = 19
"""With fewer good runs nothing is usual, because no count could be rare at the level of 5 %."""

MOST_SOURCES = 1000
"""The number of problems of a session whose findings are counted, the latest ones."""


class UsualCounts:
    """Counts the findings of a run by pattern; in a session, those of each problem by itself."""

    def __init__(self) -> None:
        """Begin with no finding."""
        self._counts: OrderedDict[str | None, Counter[str]] = OrderedDict()

    def is_usual(self, graph: InteractionGraph, pattern: str, subject: Any) -> bool:
        """Count a finding, and say whether as many of its pattern are usual for the team."""
        usual = graph.run.usual
        if usual is None or usual.runs < LEAST_RUNS:
            return False
        sources: list[str | None] = []
        if graph.run.session:
            sources += graph.unanswered(graph.sources_about(subject) or NOTHING)
        return is_usual(usual, pattern, max(self._count(s, pattern) for s in sources or [None]))

    def _count(self, source: str | None, pattern: str) -> int:
        counts = self._counts.setdefault(source, Counter())
        self._counts.move_to_end(source)
        if len(self._counts) > MOST_SOURCES:
            self._counts.popitem(last=False)
        counts[pattern] += 1
        return counts[pattern]


def is_usual(usual: Usual, pattern: str, j: int) -> bool:
    """Whether more than 5 % of good runs have the j-th finding of a pattern, too.

    Args:
        usual: The counts of good runs.
        pattern: The short name of the pattern.
        j: The number of findings of the pattern in the run, or about the problem.
    """
    counts = usual.counts.get(pattern, ())
    runs = counts[j - 1] if j <= len(counts) else 0
    return usual.runs >= LEAST_RUNS and 20 * (1 + runs) > 1 + usual.runs


def most_usual(usual: Usual) -> dict[str, int]:
    """The usual number of findings of a pattern in a run, or about a problem; of those with any."""
    each = {
        pattern: next(j for j in count() if not is_usual(usual, pattern, j + 1))
        for pattern in sorted(usual.counts)
    }
    return {pattern: j for pattern, j in each.items() if j}
