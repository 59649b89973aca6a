"""CLA, cross-lineage aggregation: events without a common ancestor are put together.

Paper, section 5 (6). An event is compared with the others of a buffer when it comes there, and
again with those that an activation consumes together with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge, nsmallest
from itertools import combinations, islice
from typing import Any

from dig._util.ranges import RangeSet
from dig._util.text import cut, name, names
from dig.detectors.finding import MOST_EVIDENCE, Finding, Path, Severity
from dig.detectors.interventions import Inject, Intervention, Reroute
from dig.detectors.ladder import LadderStep, Progress
from dig.detectors.notes import MOST_QUOTED, ancestries, ancestry, into_outputs, quote
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.history import FINAL
from dig.graph.records import MERGED, MET, Deliver, End, Record
from dig.graph.state import EventState, by_number


class CrossLineageAggregation(Detector):
    """Compares the roots of events; disjoint roots mean different origins."""

    pattern = "CLA"
    recorded_as = "dig.detectors.cross_lineage.CrossLineageAggregation"
    kinds = (MET, MERGED)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise CLA for a delivery, or at the end of an activation."""
        if isinstance(record, End):
            yield from _at_consumption(graph, record)
        elif isinstance(record, Deliver) and record.to is not None:
            yield from _at_delivery(graph, record, record.to)


def _at_delivery(graph: InteractionGraph, record: Deliver, agent: str) -> Iterator[Finding]:
    event = graph.event(record.event)
    if not event.roots:
        return
    lineages = graph.present[agent].lineages  # of few kinds, however long the buffer is
    strange = [
        alike
        for (roots, _), alike in lineages.items()
        if roots is not event.roots.ranges and _first(alike).roots.isdisjoint(event.roots)
    ]
    if strange:
        first = merge(*(alike.values() for alike in strange), key=by_number)
        evidence = {"conflicts": [other.id for other in islice(first, MOST_EVIDENCE + 1)]}
        subject = {"event": event.id, "agent": agent}
        severity: Severity = "notice"
        if any(graph.are_apart(_first(alike).sources, event.sources) for alike in strange):
            severity = "warning"
        yield Finding("CLA", record.t, record.us, subject, evidence, "delivery", severity)


def _first(alike: Mapping[str, EventState]) -> EventState:
    return next(iter(alike.values()))


def _at_consumption(graph: InteractionGraph, record: End) -> Iterator[Finding]:
    alike: dict[RangeSet, list[int]] = {}  # of few kinds, however many the inputs are
    for event in graph.ended.consumed:
        if event.roots:
            alike.setdefault(event.roots, []).append(event.n)
    pairs = list(islice(_pairs(alike), MOST_EVIDENCE + 1))
    if pairs:
        ids = graph.history.event_ids
        subject = {"activation": record.activation}
        evidence = {"conflicts": [[ids[a], ids[b]] for a, b in pairs]}
        yield Finding("CLA", record.t, record.us, subject, evidence, "consumption", "warning")


def _pairs(alike: Mapping[RangeSet, list[int]]) -> Iterator[tuple[int, int]]:
    """The pairs of events with disjoint roots, in order of generation.

    Args:
        alike: The numbers of some events, by their roots.
    """
    # Compared are kinds of roots, not events: many inputs usually share few kinds.
    strangers = {roots: [other for other in alike if roots.isdisjoint(other)] for roots in alike}
    events = sorted((n, roots) for roots, ns in alike.items() if strangers[roots] for n in ns)
    for n, roots in events:
        later = (b for other in strangers[roots] for b in alike[other] if b > n)
        yield from ((n, b) for b in nsmallest(MOST_EVIDENCE + 1, later))


def describe(subject: Any, evidence: Any) -> str:
    """CLA in words."""
    conflicts = evidence["conflicts"]
    if "agent" in subject:
        event, agent = name(subject["event"]), name(subject["agent"])
        return f"{event} came to {agent} beside {names(conflicts)}, of other origin"
    pairs = cut([f"{name(a)} with {name(b)}" for a, b in conflicts])
    return f"activation {name(subject['activation'])} put together {pairs}, of different origin"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The paths to two events without a common activation, each from a root."""
    conflicts = finding.evidence["conflicts"]
    onward = [finding.subject["activation"]] if finding.stage == "consumption" else []
    pair = conflicts[0] if onward else [finding.subject["event"], conflicts[0]]
    first, second = (paths.path_to(event, *onward, to_root=True) for event in pair)
    text, graph = "", paths.graph
    if all(map(graph.knows, pair)):
        text = (
            f"{name(pair[0])} goes back to {name(_root(graph, pair[0], first))}, "
            f"{name(pair[1])} to {name(_root(graph, pair[1], second))}, "
            "and no activation is behind both."
        )
    return text, (first, second)


def _root(graph: InteractionGraph, event: str, path: Path) -> str:
    """The beginning of a path if a root; else, for a cut path, a root of the event."""
    history, first = graph.history, path.nodes[0]
    v = history.activation(first)
    if v is not None and history.root_number[v] >= 0:
        return first
    return graph.root(next(iter(graph.root_numbers(event))))


class HealCrossLineage(Healer):
    """Puts a note about the origins beside the events; a mixed answer goes back with it."""

    recorded_as = "dig.detectors.healing.HealCrossLineage"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Inject]:
        """Inject the ancestries: into the delivered event, or into the activation's outputs."""
        conflicts = finding.evidence["conflicts"]
        if finding.stage == "delivery":
            event = finding.subject["event"]
            note = (
                f"This event comes from {ancestry(graph, event)}. In front of you lies what "
                f"has no origin in common with it: {ancestries(graph, conflicts)}. "
                "Put them together only if they belong together."
            )
            yield Inject(event, note, (finding.subject["agent"],))
            return
        pairs = "; ".join(
            f"{quote(a)} from {ancestry(graph, a)} with {quote(b)} from {ancestry(graph, b)}"
            for a, b in conflicts[:MOST_QUOTED]
        )
        note = f"This was made by putting together what has no origin in common: {pairs}."
        yield from into_outputs(graph, finding, note)

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        """Inject the ancestries; return an answer that mixes problems to its submitter, once."""
        h = graph.history
        for wish in self.heal(graph, finding):
            n = graph.event(wish.event).n
            inputs = h.inputs(h.generator[n]) if finding.stage == "consumption" else ()
            apart = combinations({graph.sources_of(e) for e in inputs}, 2)
            is_mixed = h.flags[n] & FINAL and any(graph.are_apart(*pair) for pair in apart)
            # An agent that joins a returned answer with others has had the note before.
            if is_mixed and not any(h.flags[e] & FINAL for e in inputs):
                yield Reroute(wish.event, wish.note, (h.sender(n) or "",))
            else:
                yield wish

    def progress(self, graph: InteractionGraph, finding: Finding, step: LadderStep) -> Progress:
        """Nothing more is done."""
        return "made"
