"""Relevance of notes: a note belongs to the request of the finding.

It is shown in turns that work for that request, or for none, until the finding is mended or the
request is answered. So nothing that is said about one customer's request reaches another's.
"""

from __future__ import annotations

from typing import Literal
from weakref import WeakSet

from dig._util.ranges import RangeSet
from dig.detectors.finding import Finding, texts_in
from dig.detectors.mended import Mending
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record

Showing = Literal["now", "later", "never"]


class Scope:
    """The turns for the notes about one finding."""

    __slots__ = ("__weakref__", "_has_sources", "_mending", "_number", "subject")

    def __init__(
        self, finding: Finding, mending: Mending, number: int, *, has_sources: bool
    ) -> None:
        """Begin; `number` is the finding's place in `mending`."""
        self.subject = finding.subject
        self._mending = mending
        self._number = number
        self._has_sources = has_sources

    def when_shown(self, graph: InteractionGraph, concerned: RangeSet) -> Showing:
        """Whether a turn is shown the notes now, later or never.

        Args:
            graph: The graph as it stands.
            concerned: The sources that the turn works for.
        """
        # Asked at each turn, not once: a finding may be mended while its note waits.
        if self._mending.mended[self._number]:
            return "never"
        if not self._has_sources:
            return "now"
        sources = graph.sources_about(self.subject)
        open_sources = graph.problems.unanswered_sources(sources) if sources else None
        if not open_sources:
            return "never"
        return "later" if concerned and open_sources.isdisjoint(concerned) else "now"


class Relevance:
    """Follows a run while there are notes to be shown.

    Attributes:
        is_used: Whether there may be such notes.
    """

    def __init__(self, graph: InteractionGraph) -> None:
        """Begin with no note."""
        self._graph = graph
        # Weak: a scope lives as long as its notes; without any, no record is followed.
        self._scopes: WeakSet[Scope] = WeakSet()
        self._mending = Mending()
        self.is_used = False

    def scope(self, finding: Finding) -> Scope:
        """Make the scope of notes about a new finding."""
        number = len(self._mending.mended)
        self._mending.add(self._graph, finding)
        has_sources = bool(self._graph.sources_about(finding.subject))
        scope = Scope(finding, self._mending, number, has_sources=has_sources)
        self._scopes.add(scope)
        self.is_used = True
        return scope

    def awaited_ids(self) -> set[str]:
        """The events and activations in the subjects of findings with notes still to be shown."""
        return {text for scope in self._scopes for text in texts_in(scope.subject)}

    def look(self, record: Record) -> None:
        """Note the latest record of the graph."""
        if self._scopes:
            self._mending.look(self._graph, record)
        else:
            self._mending, self.is_used = Mending(), False
