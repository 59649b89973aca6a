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
from dig.graph.graph import InteractionGraph
from dig.graph.records import (
    FATES,
    NOTICE,
    SYSTEM,
    Deliver,
    Emit,
    End,
    FindingRow,
    Finish,
    HealRow,
    IncidentRow,
    Join,
    Leave,
    Record,
    Run,
    Start,
)

from .journal.reader import feed_records


@dataclass(slots=True, eq=False)
class RecordedEvent:
    """An event and everything that happened to it.

    Attributes:
        id: Its id.
        t, us: The record that generated it, and that moment in microseconds.
        by: The activation that generated it, ``None`` (from outside) or ``"system"``.
        agent: The agent of that activation, if there is one.
        to, type, final, payload: As it was emitted.
        arrivals: The agents it was delivered to, each with the record of the delivery.
        accepted_t: The record that accepted it as an answer, if one did.
        consumed_by: The activations that consumed it.
        reroutes: The records at which an activation rerouted it.
    """

    id: str
    t: int
    us: int
    by: str | None
    agent: str | None
    to: tuple[str, ...]
    type: str
    final: bool
    payload: Any
    arrivals: list[tuple[str, int]] = field(default_factory=list)
    accepted_t: int | None = None
    consumed_by: list[str] = field(default_factory=list)
    reroutes: list[int] = field(default_factory=list)

    @property
    def is_work(self) -> bool:
        """Whether the event is work: no system event, no final event, no notice."""
        return not (self.final or self.by == SYSTEM or self.type == NOTICE)


@dataclass(slots=True, eq=False)
class RecordedActivation:
    """An activation and everything that it did.

    Attributes:
        id, agent, inputs: As it was started.
        t, us: The record that started it, and that moment in microseconds.
        end: The record that ended it, if it ended.
        fates: The fates that its end names, by event; `RecordedRun.fates` has the implied ones.
    """

    id: str
    agent: str
    inputs: tuple[str, ...]
    t: int
    us: int
    end: End | None = None
    fates: dict[str, str] = field(default_factory=dict)

    def with_fate(self, fate: str) -> list[str]:
        """The inputs that have this fate."""
        return [event for event, its in self.fates.items() if its == fate]

    @property
    def has_failed(self) -> bool:
        """Whether the activation ended with an error."""
        return self.end is not None and self.end.error is not None

    @property
    def has_raised(self) -> bool:
        """Whether the activation ended with an error of its own: not passed on, not called off."""
        end = self.end
        return end is not None and self.has_failed and not (end.because or end.cancelled)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The events that it generated."""
        return self.end.outputs if self.end else ()


class RecordedRun:
    """The events, activations and agents of one recorded run, by id.

    Attributes:
        records: The records; the number of a record is its place in this list.
        times: The moment of each record, in microseconds.
        events: The events by id, as generated.
        activations: The activations by id, as started.
        agents: Every agent that ever took part, in the order in which they came.
        leaves: The record at which an agent left for the last time, by agent.
        findings: The findings that the trace records.
        heals: The interventions; see `heals_of`.
        incidents: The incidents that the trace records.
        answer: The final event that was accepted last, if one was.
        finish: The last record, if the run has ended.
        found: The findings of the given detectors, independent of those in the trace.
    """

    def __init__(self, records: Iterable[Record], watch: Watch | None = None) -> None:
        """Go through the records of a run.

        Args:
            records: The records, from the first one on.
            watch: A fresh watch that each record is applied to first. ``None``: the records are
                known to follow the rules; the graph is made when it is asked for.

        Raises:
            RuleError: A record contradicts those before it.
        """
        self.records: list[Record] = []
        self.times = array("q")
        self.events: dict[str, RecordedEvent] = {}
        self.activations: dict[str, RecordedActivation] = {}
        self.agents: dict[str, None] = {}
        self.leaves: dict[str, int] = {}
        self.findings: list[FindingRow] = []
        self.heals: list[HealRow] = []
        self.incidents: list[IncidentRow] = []
        self.answer: RecordedEvent | None = None
        self.finish: Finish | None = None
        self.found: list[Finding] = []
        self._watch = watch
        self._orphaned: dict[str, int] = {}
        self._left: dict[int, set[str]] = {}
        self._ancestors: dict[str, frozenset[str]] = {}
        for record in records:
            self._add(record)

    @classmethod
    def read(
        cls, path: Path, *, payloads: bool = False, detectors: Sequence[Detector] = ()
    ) -> RecordedRun:
        """Read a trace, and check it against the rules.

        Args:
            path: The trace file or run directory.
            payloads: Whether to read large payloads that lie beside the trace; without, they are
                ``None``, and may be missing.
            detectors: The detectors that look at the run (see `found`); by default none.

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
        """
        run = cls((), Watch(detectors))
        for _ in feed_records(path, run._add, payloads=payloads):
            pass
        return run

    # --- questions ---

    @property
    def graph(self) -> InteractionGraph:
        """The graph at the end of the run."""
        return self._watched().graph

    @property
    def last(self) -> Record:
        """The last record."""
        return self.records[-1]

    def at(self, us: float) -> int:
        """The first record that is not before a moment; the last one, if there is none."""
        return min(bisect_left(self.times, us), len(self.records) - 1)

    def agent_of(self, name: str) -> str | None:
        """The agent of an activation or of an event's generator, or the agent with this name."""
        if name in self.activations:
            return self.activations[name].agent
        if name in self.events:
            return self.events[name].agent
        return name if name in self.agents else None

    def fates(self, activation: str) -> dict[str, str]:
        """The fate that an ended activation gave to each input, implied fates included."""
        h = self.graph.history
        edges = h.edges(h.activation_number(activation))
        return {h.event_ids[edge.event]: FATES[edge.fate] for edge in edges if edge.fate >= 0}

    def inputs(self, activation: RecordedActivation) -> list[RecordedEvent]:
        """The events that an activation consumed, system events left out."""
        consumed = (self.events[name] for name in activation.with_fate("consume"))
        return [event for event in consumed if event.by != SYSTEM]

    def outputs(self, activation: RecordedActivation) -> list[RecordedEvent]:
        """The events that an activation generated; a trace may stop before the last of them."""
        return [self.events[name] for name in activation.outputs if name in self.events]

    def is_problem_generating(self, activation: RecordedActivation) -> bool:
        """Whether an activation has inputs, and more outputs than inputs (paper, section 4.4)."""
        return 0 < len(self.inputs(activation)) < len(activation.outputs)

    def heals_of(self, finding: int | None) -> list[HealRow]:
        """The interventions about the finding in a row of kind `finding`."""
        return [row for row in self.heals if row.finding == finding]

    def orphaned_t(self, event: str) -> int | None:
        """The first record after which no agent could reach an event, if there is one."""
        self._watched()
        return self._orphaned.get(event)

    def is_orphaned(self, event: str) -> bool:
        """Whether, in the end, an event was never consumed and no agent can reach it."""
        live = self.graph.live.get(event)
        return live is not None and live.cause is not None

    def is_unread(self, event: RecordedEvent) -> bool:
        """Whether, in the end, no agent has consumed an event although one could have."""
        return not event.consumed_by and not self.is_orphaned(event.id)

    def left_with(self, leave: Leave, event: str) -> bool:
        """Whether an event lay before an agent, or was on its way to it, when the agent left."""
        self._watched()
        return event in self._left[leave.t]

    def consumption(self, event: RecordedEvent) -> End | None:
        """The end of the first activation that consumed an event."""
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

    def _watched(self) -> Watch:
        if self._watch is None:
            self._watch = Watch(())
            for record in self.records:
                self._apply(self._watch, record)
        return self._watch

    # --- reading ---

    def _add(self, record: Record) -> None:
        if self._watch is not None:
            self._apply(self._watch, record)
        self.records.append(record)
        self.times.append(record.us)
        self._enter(record)

    def _apply(self, watch: Watch, record: Record) -> None:
        self.found += [in_graph(watch.graph, finding) for finding in watch.feed(record)]
        touched = watch.graph.touched
        for event in touched:
            if event.cause is not None:
                self._orphaned.setdefault(event.id, record.t)
        if isinstance(record, Leave):
            self._left[record.t] = {event.id for event in touched}

    def _enter(self, record: Record) -> None:
        match record:
            case Emit():
                self._emitted(record)
            case Deliver(event=event, to=None, t=t):
                self.answer = self.events[event]
                self.answer.accepted_t = t
            case Deliver(event=event, to=str(to), t=t):
                self.events[event].arrivals.append((to, t))
            case Start(activation=name, agent=agent, inputs=inputs, t=t, us=us):
                self.activations[name] = RecordedActivation(name, agent, inputs, t, us)
            case End():
                self._ended(record)
            case FindingRow():
                self.findings.append(record)
            case HealRow():
                self.heals.append(record)
            case IncidentRow():
                self.incidents.append(record)
            case Run(agents=agents):
                self.agents.update(dict.fromkeys(agents))
            case Join(agent=agent):
                self.agents[agent] = None
            case Leave(agent=agent, t=t):
                self.leaves[agent] = t
            case Finish():
                self.finish = record

    def _emitted(self, r: Emit) -> None:
        by = self.activations.get(r.by or "")
        agent = by.agent if by else None
        self.events[r.event] = RecordedEvent(
            r.event, r.t, r.us, r.by, agent, r.to, r.type, r.final, r.payload
        )

    def _ended(self, record: End) -> None:
        activation = self.activations[record.activation]
        activation.end = record
        for fate in record.fates:
            activation.fates[fate.event] = fate.fate
            if fate.fate == "consume":
                self.events[fate.event].consumed_by.append(activation.id)
            elif fate.fate == "reroute":
                self.events[fate.event].reroutes.append(record.t)


def recorded_rows(
    findings: Sequence[Finding], rows: Iterable[FindingRow]
) -> tuple[list[FindingRow | None], list[FindingRow]]:
    """The row of a trace that each finding of its detectors was recorded as.

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
    return matched, sorted(
        (row for unmatched in by_finding.values() for row in unmatched), key=_number
    )


def _number(row: FindingRow) -> int:
    return row.t


def _content(finding: Finding | FindingRow) -> str:
    parts = (finding.pattern, finding.stage, finding.subject, finding.evidence)
    return json.dumps(parts, sort_keys=True)
