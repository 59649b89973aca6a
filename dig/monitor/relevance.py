"""Relevance of notes: a note belongs to the request that its finding is about.

It is shown in turns that work for that request, or for none, until the finding is mended or the
request is answered. So nothing that is said about one customer's request reaches another's.
"""

from __future__ import annotations

from typing import Literal
from weakref import WeakSet

from dig._util.ranges import RangeSet
from dig.detectors.finding import Finding
from dig.detectors.mended import Mending
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record

Showing = Literal["now", "later", "never"]


class Scope:
    """The turns that the notes about one finding are for."""

    __slots__ = ("__weakref__", "_has_sources", "_mending", "_number", "_subject")

    def __init__(
        self, finding: Finding, mending: Mending, number: int, *, has_sources: bool
    ) -> None:
        """Begin; the finding has this number among those of `mending`."""
        self._subject = finding.subject
        self._mending = mending
        self._number = number
        self._has_sources = has_sources

    def when_shown(self, graph: InteractionGraph, concerned: RangeSet) -> Showing:
        """Whether a turn is shown these notes.

        Args:
            graph: The graph as it stands.
            concerned: The sources that the turn works for.
        """
        if self._mending.mended[self._number]:
            return "never"
        if not self._has_sources:
            return "now"
        sources = graph.sources_about(self._subject)
        open_sources = graph.problems.unanswered_sources(sources) if sources else None
        if not open_sources:
            return "never"
        return "later" if concerned and open_sources.isdisjoint(concerned) else "now"


class Relevance:
    """Follows a run for as long as there are notes that an agent may still be shown.

    Attributes:
        is_used: Whether there may be such notes.
    """

    def __init__(self, graph: InteractionGraph) -> None:
        """Begin with no note."""
        self._graph = graph
        self._scopes: WeakSet[Scope] = WeakSet()
        self._mending = Mending()
        self.is_used = False

    def scope(self, finding: Finding) -> Scope:
        """The scope of notes about a finding that was just raised."""
        number = len(self._mending.mended)
        self._mending.add(self._graph, finding)
        has_sources = bool(self._graph.sources_about(finding.subject))
        scope = Scope(finding, self._mending, number, has_sources=has_sources)
        self._scopes.add(scope)
        self.is_used = True
        return scope

    def look(self, record: Record) -> None:
        """Take note of a record that the graph was just changed by."""
        if self._scopes:
            self._mending.look(self._graph, record)
        else:
            self._mending, self.is_used = Mending(), False
