"""Mended findings: failures repaired later in the run, with healing or without.

One class says so for checks, goals, reports and benchmarks. It reads along: feed it each record
after the graph was changed by it, and each finding when it is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dig.graph.coverage import provenance
from dig.graph.graph import InteractionGraph
from dig.graph.records import Deliver, Emit, End, Record

from .finding import Finding
from .usual import NEVER

BOUNCED = ("ET", "VOID")
"""The patterns that are mended when an answer without them is accepted."""

ANSWERED = ("LOOP", "LIVELOCK")
"""The patterns that are mended when an answer is accepted."""

CONSUMED = ("OE", "LATE", "ER")
"""The patterns that are mended when their event is consumed."""

_RUN = ""
"""Stands for the whole of a run that is no session."""


class Mending:
    """Follows a run, and decides for each finding whether the run mended the failure.

    Attributes:
        mended: For each finding, in the order in which they came, whether it was mended.
    """

    def __init__(self) -> None:
        """Begin with no finding."""
        self.mended: list[bool] = []
        # Of the answers under way: what they answer, what they go back to, what is wrong with them.
        self._aims: dict[str, tuple[list[str], list[str]]] = {}
        self._bad: dict[str, set[str]] = {}
        self._by_event: dict[str, list[int]] = {}
        # The findings to be mended, by pattern and by the event from outside behind them.
        waiting = (*BOUNCED, *ANSWERED, NEVER, "MC", "DL")
        self._waiting: dict[str, dict[str, list[int]]] = {pattern: {} for pattern in waiting}
        self._stalled: dict[str, int] = {}
        self._held: dict[str, list[int]] = {}  # event -> the stalled that hold it
        self._unconsumed: dict[int, int] = {}  # stalled -> how many of its inputs

    def look(self, graph: InteractionGraph, record: Record) -> None:
        """Take note of a record after the graph was changed."""
        if isinstance(record, End):
            self._end_activation(graph, record)
        elif isinstance(record, Emit) and record.final:
            aims, _ = self._aims[record.event] = _aims(graph, record.event)
            self._settle(("MC",), aims)
        elif isinstance(record, Deliver) and record.event in self._aims:
            aims, requests = self._aims.pop(record.event)
            # An answer may be without one flaw and have another: each pattern is mended by itself.
            bad = self._bad.pop(record.event, ())
            if record.to is not None:
                return
            self._settle(ANSWERED, aims)
            self._settle((NEVER,), requests)
            # Only an accepted answer without the flaw mends the earlier bounces.
            self._settle((pattern for pattern in BOUNCED if pattern not in bad), aims)

    def add(self, graph: InteractionGraph, finding: Finding) -> None:
        """Take note of a new finding."""
        number, pattern = len(self.mended), finding.pattern
        self.mended.append(False)
        event, activation = (finding.subject.get(key) for key in ("event", "activation"))
        if pattern in BOUNCED and finding.severity == "error" and event in self._aims:
            self._bad.setdefault(event, set()).add(pattern)
        if pattern in CONSUMED and event is not None:
            self._by_event.setdefault(event, []).append(number)
        elif pattern == "STALL" and activation is not None:
            self._stalled[activation] = number
            inputs = finding.evidence.get("inputs", ())
            held = [e for e in inputs if graph.knows(e) and not graph.event(e).consumed]
            # Work that others have consumed already cannot be held up by the stalled agent.
            self.mended[number] = bool(inputs) and not held
            self._unconsumed[number] = len(held)
            for event_id in held:
                self._held.setdefault(event_id, []).append(number)
        if finding.key == NEVER:
            sources = [_RUN] if not graph.run.session else [] if event is None else [event]
            self._wait(NEVER, sources, number)
        elif pattern in self._waiting:
            aims = self._aims.get(event) if pattern in BOUNCED and event is not None else None
            self._wait(pattern, aims[0] if aims else _sources(graph, finding.subject), number)

    def unmended_errors(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The errors that are neither mended nor silenced.

        Args:
            findings: All findings that were added, in this order.
        """
        for finding, is_mended in zip(findings, self.mended, strict=True):
            if finding.severity == "error" and finding.silenced is None and not is_mended:
                yield finding

    def _wait(self, pattern: str, sources: Iterable[str], number: int) -> None:
        for source in sources:
            self._waiting[pattern].setdefault(source, []).append(number)

    def _settle(self, patterns: Iterable[str], sources: Sequence[str]) -> None:
        for pattern in patterns:
            for source in sources:
                for number in self._waiting[pattern].pop(source, ()):
                    self.mended[number] = True

    def _end_activation(self, graph: InteractionGraph, record: End) -> None:
        used = (fate.event for fate in record.fates if fate.fate == "consume")
        for event in used if self._by_event or self._held else ():
            for number in self._by_event.pop(event, ()):
                self.mended[number] = True
            for number in self._held.pop(event, ()):
                self._unconsumed[number] -= 1
                self.mended[number] |= not self._unconsumed[number]
        if self._waiting["DL"]:
            moved = (f.event for f in record.fates if f.fate != "delay")
            if record.outputs or any(graph.event(event).work for event in moved):
                self._settle(("DL",), _sources(graph, {"activation": record.activation}))
        number = self._stalled.pop(record.activation, -1)
        if number >= 0 and not record.error:
            self.mended[number] = True


def _aims(graph: InteractionGraph, final: str) -> tuple[list[str], list[str]]:
    """The unanswered requests of a final event, and all requests behind the event.

    It was just generated; of a run that is no session, both are the run itself.
    """
    if not graph.run.session:
        return [_RUN], [_RUN]
    h = graph.history
    behind = provenance(graph, h.event_number(final))
    return list(graph.asked_problems(final)), [h.event_ids[n] for n in behind.outside]


def _sources(graph: InteractionGraph, subject: dict[str, str]) -> list[str]:
    """The events from outside behind a subject; the run itself if it is no session."""
    if not graph.run.session:
        return [_RUN]
    return graph.source_ids(graph.sources_about(subject) or ())
