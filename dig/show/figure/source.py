"""The source of a picture: a run, read once, with graph, clock and findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dig.detectors import standard
from dig.detectors.finding import Finding
from dig.graph.graph import InteractionGraph
from dig.graph.records import FindingRow, HealRow
from dig.show.page.about import clock_speed
from dig.show.runs.summary import read_beside
from dig.traces.journal.journal import SIDE
from dig.traces.run import RecordedRun


@dataclass
class Source:
    """A run to be drawn.

    Attributes:
        graph: Its graph, at the end.
        clock: The wall time of every record, in microseconds, by its logical time.
        findings: The recorded findings or, if there are none, those of the standard detectors.
        found: The findings of the standard detectors, at the record that raises each.
        heals: The interventions.
        failed: The activations that ended with an error.
        judged: The logical time at which each answer was accepted or bounced; ``None``: unknown.
        time: What `clock` counts, in words.
        has_clock: Whether these are times.
        is_simulated: Whether its agents were simulated, without a language model.
        method: The method against failures, if it is known.
    """

    graph: InteractionGraph
    clock: Sequence[int]
    findings: Sequence[FindingRow | Finding] = ()
    found: Sequence[Finding] = ()
    heals: Sequence[HealRow] = ()
    failed: Collection[str] = ()
    judged: Mapping[str, int] | None = None
    time: str = "by record"
    has_clock: bool = True
    is_simulated: bool = False
    method: str | None = None

    @classmethod
    def of(cls, run: Path) -> Source:
        """Read a trace file or run directory.

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
        """
        recorded = RecordedRun.read(run, detectors=standard())
        side = read_beside(run, SIDE)
        speed = clock_speed(side)
        time = "in simulated time" if side.get("clock") == "virtual" else "in time as recorded"
        if speed:  # of a trace without a side file nobody knows what its times are
            time = "in wall time" if speed == 1 else f"in the run's time, {speed:g} times as fast"
        method = side.get("method")
        verdicts: dict[str, int] = {}
        for event in recorded.events.values():
            records = [t for _, t in event.arrivals]  # of a final event: it was sent back
            records += [] if event.accepted_t is None else [event.accepted_t]
            if event.final and records:
                verdicts[event.id] = min(records)
        return cls(
            recorded.graph,
            recorded.times,
            recorded.findings or recorded.found,
            recorded.found,
            recorded.heals,
            {id for id, activation in recorded.activations.items() if activation.has_failed},
            verdicts,
            time,
            is_simulated=side.get("agents_are") == "simulated",
            method=method if isinstance(method, str) else None,
        )

    @property
    def agents(self) -> list[str]:
        """All agents, in order."""
        return list(dict.fromkeys((*self.graph.run.agents, *self.graph.history.agents.names)))

    def agent_of(self, id: str) -> str | None:
        """The agent of an activation, or of the generator of an event; ``None``: no agent."""
        h = self.graph.history
        v, n = h.activation(id), h.event(id)
        if n is not None:
            return h.sender(n)
        return None if v is None else h.agent(v)

    def finding(self, t: int) -> FindingRow | Finding | None:
        """The finding of a record, or of the record that raises it, if there is any."""
        raised = next((finding for finding in self.found if finding.t == t), None)
        for row in self.findings:
            is_same = raised and (row.pattern, row.us, row.subject) == (
                raised.pattern, raised.us, raised.subject,
            )  # fmt: skip
            if row.t == t or is_same:
                return row
        return raised

    @classmethod
    def of_graph(cls, graph: InteractionGraph) -> Source:
        """A graph without a clock: all records are equally long."""
        return cls(graph, range(0, (graph.t + 1) * 1_000_000, 1_000_000), has_clock=False)
