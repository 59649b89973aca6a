"""A recorded run, read once, for explanations, pictures, verification and diagnosis.

`RecordedRun` goes through the records of a run in one pass and collects the fate of each event and
each activation:

    run = RecordedRun.read(Path("runs/2026-..."))
    for activation in run.activations.values():
        print(activation.agent, activation.inputs, activation.fates, activation.outputs)
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dig.detectors.describe import in_graph
from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector
from dig.detectors.watch import Watch
from dig.graph import records as kinds
from dig.graph.graph import InteractionGraph
from dig.graph.records import End, FindingRow, Finish, HealRow, IncidentRow, Leave, Record

from .journal.reader import feed_records
from .journal.stored import StoredRecords


@dataclass(slots=True, eq=False)
class RecordedEvent:
    """An event with all its fates.

    Attributes:
        run: The run, which has the payload.
        t: The record that generated it.
        by: The activation that generated it, ``None`` (from outside) or ``"system"``.
        agent: The agent of that activation, if there is one.
        to, type, final: As it was emitted.
        arrivals: The agents it was delivered to, each with the record of the delivery.
        accepted_t: The record that accepted it as an answer, if one did.
        consumed_by: The activations that consumed it.
        reroutes: The records at which an activation rerouted it.
    """

    run: RecordedRun = field(repr=False)
    id: str
    t: int
    by: str | None
    agent: str | None
    to: tuple[str, ...]
    type: str
    final: bool
    # Tuples, since most events arrive once and are consumed once: a list has room for more.
    arrivals: tuple[tuple[str, int], ...] = ()
    accepted_t: int | None = None
    consumed_by: tuple[str, ...] = ()
    reroutes: tuple[int, ...] = ()

    @property
    def us(self) -> int:
        """The moment of generation, in microseconds."""
        return self.run.times[self.t]

    @property
    def payload(self) -> Any:
        """The payload; of a stored run, read from the file."""
        record = self.run.records[self.t]
        return record.payload if isinstance(record, kinds.Emit) else None

    @property
    def is_work(self) -> bool:
        """Whether the event is work: no system event, no final event, no notice."""
        return not (self.final or self.by == kinds.SYSTEM or self.type == kinds.NOTICE)


@dataclass(slots=True, eq=False)
class RecordedActivation:
    """An activation with all its acts.

    Attributes:
        id, agent, inputs: As it was started.
        t, us: The record that started it, and that moment in microseconds.
        end: The record that ended it, if it ended.
    """

    id: str
    agent: str
    inputs: tuple[str, ...]
    t: int
    us: int
    end: End | None = None

    @property
    def fates(self) -> dict[str, str]:
        """The fates in the record of the end, by event; `RecordedRun.fates` adds implied fates."""
        return {each.event: each.fate for each in self.end.fates} if self.end else {}

    def with_fate(self, fate: str) -> list[str]:
        """The inputs with a fate."""
        return [each.event for each in self.end.fates if each.fate == fate] if self.end else []

    @property
    def has_failed(self) -> bool:
        """Whether the activation ended with an error."""
        return self.end is not None and self.end.error is not None

    @property
    def has_raised(self) -> bool:
        """Whether the activation ended with an own error: not passed on, not called off."""
        end = self.end
        return end is not None and self.has_failed and not (end.because or end.cancelled)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The generated events."""
        return self.end.outputs if self.end else ()


class RecordedRun:
    """The events, activations and agents of a recorded run, by id.

    Attributes:
        records: The records; the number of a record is its place in this sequence.
        times: The moment of each record, in microseconds.
        events: The events by id, as generated.
        activations: The activations by id, as started.
        agents: Every agent that ever took part, in the order in which they came.
        leaves: The record at which an agent left for the last time, by agent.
        membership: The records of agents that came or left later.
        expired: The records of events that expired on their way.
        findings: The findings that the trace records.
        heals: The interventions; see `heals_of`.
        incidents: The incidents that the trace records.
        answer: The final event that was accepted last, if one was.
        finish: The last record, if the run has ended.
        found: The findings of the given detectors, independent of those in the trace.
    """

    def __init__(
        self, records: Iterable[Record], watch: Watch | None = None,
        stored: StoredRecords | None = None,
    ) -> None:  # fmt: skip
        """Go through the records of a run.

        Args:
            records: The records, from the first one on.
            watch: A fresh watch that each record is applied to first. ``None``: the records are
                known to follow the rules; the graph is made when it is asked for.
            stored: The records as they lie in files; ``None``: they are kept.

        Raises:
            RuleError: A record contradicts those before it.
        """
        self._kept: list[Record] = []
        self.records: Sequence[Record] = self._kept if stored is None else stored
        self.last: Record
        self.times = array("q")
        self.events: dict[str, RecordedEvent] = {}
        self.activations: dict[str, RecordedActivation] = {}
        self.agents: dict[str, None] = {}
        self.leaves: dict[str, int] = {}
        self.membership: list[kinds.Join | Leave] = []
        self.expired: list[kinds.Expire] = []
        self.findings: list[FindingRow] = []
        self.heals: list[HealRow] = []
        self.incidents: list[IncidentRow] = []
        self.answer: RecordedEvent | None = None
        self.finish: Finish | None = None
        self.found: list[Finding] = []
        self._watch = watch
        self._orphaned: dict[str, int] = {}
        self._leavers_events: dict[int, set[str]] = {}
        self._ancestors: dict[str, frozenset[str]] = {}
        for record in records:
            self._add(record)

    @classmethod
    def read(
        cls, path: Path, *, payloads: bool = False, detectors: Sequence[Detector] | Watch = (),
        stored: bool = False,
    ) -> RecordedRun:  # fmt: skip
        """Read a trace, and check the rules.

        Args:
            path: The trace file or run directory.
            payloads: Whether to read large payloads that lie beside the trace; without, they are
                ``None``, and may be missing.
            detectors: The detectors that look at the run (see `found`), or a fresh watch with
                them; by default none.
            stored: Whether records and payloads stay in the file and are read again when they are
                asked for, since the run may be too long for memory.

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
        """
        places = StoredRecords() if stored else None
        watch = detectors if isinstance(detectors, Watch) else Watch(detectors)
        run = cls((), watch, places)
        tell = places.add if places is not None else None
        for _ in feed_records(path, run._add, payloads=payloads, tell=tell):
            pass
        return run

    # --- questions ---

    @property
    def graph(self) -> InteractionGraph:
        """The graph at the end of the run."""
        return self._full_watch().graph

    def at(self, us: float) -> int:
        """The first record not before a moment; else the last record."""
        return min(bisect_left(self.times, us), len(self.records) - 1)

    def agent_of(self, name: str) -> str | None:
        """The agent of an activation or of an event's generator, or the agent with the name."""
        if name in self.activations:
            return self.activations[name].agent
        if name in self.events:
            return self.events[name].agent
        return name if name in self.agents else None

    def fates(self, activation: str) -> dict[str, str]:
        """The fate of each input of an ended activation, implied fates included."""
        h = self.graph.history
        edges = h.edges(h.activation_number(activation))
        return {h.event_ids[edge.event]: kinds.FATES[edge.fate] for edge in edges if edge.fate >= 0}

    def inputs(self, activation: RecordedActivation) -> list[RecordedEvent]:
        """The events consumed by an activation, without system events."""
        consumed = (self.events[name] for name in activation.with_fate("consume"))
        return [event for event in consumed if event.by != kinds.SYSTEM]

    def outputs(self, activation: RecordedActivation) -> list[RecordedEvent]:
        """The events generated by an activation; a trace may stop before the last."""
        return [self.events[name] for name in activation.outputs if name in self.events]

    def is_problem_generating(self, activation: RecordedActivation) -> bool:
        """Whether an activation has inputs, and more outputs than inputs (paper, section 4.4)."""
        return 0 < len(self.inputs(activation)) < len(activation.outputs)

    def heals_of(self, finding: int | None) -> list[HealRow]:
        """The interventions about the finding in a row of kind `finding`."""
        return [row for row in self.heals if row.finding == finding]

    def orphaned_t(self, event: str) -> int | None:
        """The first record after which no agent could reach an event, if any."""
        self._full_watch()
        return self._orphaned.get(event)

    def is_orphaned(self, event: str) -> bool:
        """Whether, in the end, an event is unconsumed and out of reach."""
        live = self.graph.live.get(event)
        return live is not None and live.cause is not None

    def is_unread(self, event: RecordedEvent) -> bool:
        """Whether, in the end, an event is unconsumed but within reach."""
        return not event.consumed_by and not self.is_orphaned(event.id)

    def left_with(self, leave: Leave, event: str) -> bool:
        """Whether an event was in an agent's buffer, or on the way, when the agent left."""
        self._full_watch()
        return event in self._leavers_events[leave.t]

    def consumption(self, event: RecordedEvent) -> End | None:
        """The end of the first activation to consume an event."""
        return self.activations[event.consumed_by[0]].end if event.consumed_by else None

    def ancestors(self, event: str) -> frozenset[str]:
        """The events with a causal path to an event, itself included."""
        ancestors = self._ancestors.get(event)
        if ancestors is None:
            by = self.events[event].by
            used = self.activations[by].with_fate("consume") if by in self.activations else ()
            ancestors = frozenset({event}).union(*(self.ancestors(parent) for parent in used))
            self._ancestors[event] = ancestors
        return ancestors

    def _full_watch(self) -> Watch:
        # Many readers never ask for the graph, and it costs more than all the rest.
        if self._watch is None:
            self._watch = Watch(())
            for record in self.records:
                self._apply(self._watch, record)
        return self._watch

    # --- reading ---

    def _add(self, record: Record) -> None:
        if self._watch is not None:
            self._apply(self._watch, record)
        if self.records is self._kept:
            self._kept.append(record)
        self.last = record
        self.times.append(record.us)
        self._enter(record)

    def _apply(self, watch: Watch, record: Record) -> None:
        self.found += [in_graph(watch.graph, finding) for finding in watch.feed(record)]
        # The graph forgets what a record touched with the next record.
        touched = watch.graph.touched
        # An event may be orphaned, found again and orphaned once more: the first time counts.
        for event in touched:
            if event.cause is not None:
                self._orphaned.setdefault(event.id, record.t)
        if isinstance(record, Leave):
            self._leavers_events[record.t] = {event.id for event in touched}

    def _enter(self, record: Record) -> None:
        match record:
            case kinds.Emit() as r:
                by = self.activations.get(r.by or "")
                agent = by.agent if by else None
                self.events[r.event] = RecordedEvent(
                    self, r.event, r.t, r.by, agent, r.to, r.type, r.final
                )
            case kinds.Deliver(event=event, to=None, t=t):
                self.answer = self.events[event]
                self.answer.accepted_t = t
            case kinds.Deliver(event=event, to=str(to), t=t):
                self.events[event].arrivals += ((to, t),)
            case kinds.Start(activation=name, agent=agent, inputs=inputs, t=t, us=us):
                self.activations[name] = RecordedActivation(name, agent, inputs, t, us)
            case End():
                self._end(record)
            case kinds.Expire():
                self.expired.append(record)
            case FindingRow():
                self.findings.append(record)
            case HealRow():
                self.heals.append(record)
            case IncidentRow():
                self.incidents.append(record)
            case kinds.Run(agents=agents):
                self.agents.update(dict.fromkeys(agents))
            case kinds.Join(agent=agent):
                self.agents[agent] = None
                self.membership.append(record)
            case Leave(agent=agent, t=t):
                self.leaves[agent] = t
                self.membership.append(record)
            case Finish():
                self.finish = record

    def _end(self, record: End) -> None:
        activation = self.activations[record.activation]
        activation.end = record
        for fate in record.fates:
            if fate.fate == "consume":
                self.events[fate.event].consumed_by += (activation.id,)
            elif fate.fate == "reroute":
                self.events[fate.event].reroutes += (record.t,)


def recorded_rows(
    findings: Sequence[Finding], rows: Iterable[FindingRow]
) -> tuple[list[FindingRow | None], list[FindingRow]]:
    """The recorded row of each finding of detectors in a trace.

    Equal findings get the rows in their order. Findings are equal if pattern, stage, subject and
    evidence are; an old row has no severity.

    Args:
        findings: The findings that detectors raise in the trace, in order.
        rows: The rows of kind `finding` in the trace, in order.

    Returns:
        The row of each finding, ``None`` for one that is in no row; and the rows of no finding.
    """
    by_finding: dict[str, deque[FindingRow]] = {}
    for row in rows:
        by_finding.setdefault(_content(row), deque()).append(row)
    if not by_finding:
        return [None] * len(findings), []
    nothing = deque[FindingRow]()
    matched = [
        waiting.popleft() if (waiting := by_finding.get(_content(finding), nothing)) else None
        for finding in findings
    ]
    unmatched = [row for rows_left in by_finding.values() for row in rows_left]
    return matched, sorted(unmatched, key=lambda row: row.t)


def _content(finding: Finding | FindingRow) -> str:
    # The severity is left out: rows of older runs have none.
    parts = (finding.pattern, finding.stage, finding.subject, finding.evidence)
    return json.dumps(parts, sort_keys=True)
