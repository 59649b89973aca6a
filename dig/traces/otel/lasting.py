"""Findings and waits as spans, as long as the conditions stood.

A finding stands until it is mended, and a wait until its activation or its event goes on; both end
with the run, and a finding with its segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dig.detectors.describe import recorded_finding
from dig.detectors.mended import ANSWERED, BOUNCED, CONSUMED, Mending
from dig.detectors.usual import NEVER
from dig.graph.graph import InteractionGraph
from dig.graph.records import Deliver, Expire, FindingRow, Record, Redirect

from .items import Span

MENDABLE = frozenset((*BOUNCED, *ANSWERED, *CONSUMED, "MC", "DL", "STALL", NEVER))
"""The findings that last: the patterns, and patterns with a stage, that a run can mend."""

MOST_WAITS = 1_000


class Lasting:
    """The open spans of findings and waits."""

    def __init__(self, graph: InteractionGraph) -> None:
        """Begin with none.

        Args:
            graph: The graph of the run, which already has each record that is fed here.
        """
        self._graph = graph
        self._mending = Mending()
        self._findings: dict[int, Span] = {}  # by number in `_mending`
        self._mended = 0
        self._waits: dict[str, Span] = {}  # by activation or event

    @property
    def spans(self) -> list[Span]:
        """The open spans."""
        return [*self._waits.values(), *self._findings.values()]

    def look(self, record: Record, ns: int) -> Iterator[Span]:
        """Follow a record; yield the spans of ended findings and waits.

        Args:
            record: The record.
            ns: Its moment, in nanoseconds since 1970.
        """
        self._mending.look(self._graph, record)
        mended = self._mending.mended
        if mended.count(True) > self._mended:
            self._mended = mended.count(True)
            for number in [number for number in self._findings if mended[number]]:
                yield _ended(self._findings.pop(number), ns, mended=True)
        for waiting in [id for id in self._waits if self._goes_on(id, record)]:
            yield replace(self._waits.pop(waiting), end_ns=ns)

    def add_finding(self, row: FindingRow, span: Span) -> Iterator[Span]:
        """Take a finding; yield the span at once if no run can mend the finding."""
        finding, number = recorded_finding(row), len(self._mending.mended)
        try:
            if finding.key in MENDABLE:
                self._mending.add(self._graph, finding)
        except (AttributeError, TypeError):  # of a user's detector of the same name
            del self._mending.mended[number:]
        if len(self._mending.mended) == number:
            yield span
        elif self._mending.mended[number]:
            self._mended += 1
            yield _ended(span, span.end_ns, mended=True)
        else:
            self._findings[number] = span

    def add_wait(self, waiting: str, span: Span) -> None:
        """Take the wait of an activation or event; the first of several counts."""
        if len(self._waits) < MOST_WAITS:
            self._waits.setdefault(waiting, span)

    def end_findings(self, ns: int) -> Iterator[Span]:
        """End all findings, not mended, at a moment in nanoseconds since 1970."""
        for span in self._findings.values():
            yield _ended(span, ns, mended=False)
        # Afresh for each segment, so that it stays small in a session that lasts for months.
        self._mending, self._findings, self._mended = Mending(), {}, 0

    def end_all(self, ns: int, reason: str) -> Iterator[Span]:
        """End everything at a moment, in nanoseconds since 1970, for some reason."""
        yield from self.end_findings(ns)
        for span in self._waits.values():
            yield replace(span, end_ns=ns, attributes=span.attributes | {"dig.unfinished": reason})
        self._waits = {}

    def _goes_on(self, waiting: str, record: Record) -> bool:
        if self._graph.history.activation(waiting) is not None:
            return waiting not in self._graph.running
        return isinstance(record, Deliver | Redirect | Expire) and record.event == waiting


def _ended(span: Span, ns: int, *, mended: bool) -> Span:
    return replace(span, end_ns=ns, attributes=span.attributes | {"dig.mended": mended})
