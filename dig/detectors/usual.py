"""Usual findings of a team: findings of good runs as well, which are no alarm.

The `run` record may carry the counts of good runs (`dig.graph.records.Usual`). The j-th finding of
a key (`key_of`) is usual if good runs had as many of them often enough.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import count
from typing import Any

from dig._util.ranges import NOTHING, RangeSet
from dig.graph.graph import InteractionGraph
from dig.graph.records import Usual

from .finding import Finding

LEAST_RUNS = 19
"""With fewer good runs nothing is usual, because no count could be rare at the level of 5 %."""

MOST_SOURCES = 1000
"""The number of sets of sources that are remembered of a key, those with the latest findings."""

NEVER = "FAIL request"
"""The key that is never usual: a request without an answer is a loss to the one who asked."""


def key_of(graph: InteractionGraph, finding: Finding) -> str:
    """The key of a finding, before its evidence is cut.

    An early answer is usual only if what it does without is: an agent's farewell, for instance.
    """
    lists = finding.evidence if isinstance(finding.evidence, Mapping) else {}
    missing = [event for key in ("unresolved", "uncovered") for event in lists.get(key) or ()]
    if finding.pattern == "ET" and missing and all(map(graph.knows, missing)):
        types = {graph.event(event).type for event in missing}
        return f"ET {','.join(sorted(types))}"
    return finding.pattern if finding.stage is None else f"{finding.pattern} {finding.stage}"


class UsualCounts:
    """Counts the findings of a run by key; in a session, by key and sources."""

    def __init__(self) -> None:
        """Begin with no finding."""
        self._counts: dict[str, OrderedDict[RangeSet, int]] = {}

    def is_usual(self, graph: InteractionGraph, key: str, subject: Any) -> bool:
        """Count a finding; return whether as many with the key are usual for the team."""
        usual = graph.run.usual
        if usual is None or usual.runs < LEAST_RUNS:
            return False
        # A session has many problems: each has its own usual number of findings.
        sources = graph.sources_about(subject) if graph.run.session else None
        counts = self._counts.setdefault(key, OrderedDict())
        return is_usual(usual, key, add_one(counts, sources or NOTHING))

    def forget(self, graph: InteractionGraph) -> None:
        """Renumber the sources after an eviction of history."""
        for key, counts in self._counts.items():
            self._counts[key] = OrderedDict(
                (graph.renumber_sources(s), n) for s, n in counts.items()
            )


def add_one(counts: OrderedDict[RangeSet, int], sources: RangeSet) -> int:
    """Count a finding about some sources; return the count."""
    # Popped first, so the latest come last and the oldest can be dropped.
    number = counts[sources] = counts.pop(sources, 0) + 1
    if len(counts) > MOST_SOURCES:
        counts.popitem(last=False)
    return number


def is_usual(usual: Usual, key: str, j: int) -> bool:
    """Whether more than 5 % of good runs have the j-th finding with a key, too.

    Args:
        usual: The counts of good runs.
        key: The key.
        j: The number of findings with the key in the run, or about the problem.
    """
    if key == NEVER:
        return False
    counts = usual.counts.get(key, ())
    runs = counts[j - 1] if j <= len(counts) else 0
    # As an exact test at the level of 5 % ranks this run among the good ones.
    return usual.runs >= LEAST_RUNS and 20 * (1 + runs) > 1 + usual.runs


def most_usual(usual: Usual) -> dict[str, int]:
    """The usual number of findings with a key in a run, or about a problem; if any."""
    counts = {
        key: next(j for j in count() if not is_usual(usual, key, j + 1))
        for key in sorted(usual.counts)
    }
    return {key: j for key, j in counts.items() if j}
