"""What a picture is drawn from: a run, read once, with its graph, its clock and its findings."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dig.detectors import standard
from dig.detectors.finding import Finding
from dig.detectors.watch import Watch
from dig.errors import RuleError, SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import Deliver, End, FindingRow, HealRow, Record
from dig.traces.journal.journal import SIDE, read_side
from dig.traces.journal.reader import read_records, trace_path
from dig.traces.journal.segments import fault


@dataclass
class Source:
    """A run to be drawn.

    Attributes:
        graph: Its graph, at the end.
        clock: The wall time of every record, in microseconds, by its logical time.
        findings: What was raised: as it was recorded or, if nothing was, as it is found now.
        heals: What healing did.
        failed: The activations that ended with an error.
        judged: When each answer was accepted or sent back, in logical time; ``None``: not known.
        has_clock: Whether these are true times.
        is_simulated: Whether its agents were simulated, and so no language model spoke.
        method: What was done about failures, if that is known.
    """

    graph: InteractionGraph
    clock: Sequence[int]
    findings: Sequence[FindingRow | Finding] = ()
    heals: Sequence[HealRow] = ()
    failed: Collection[str] = ()
    judged: Mapping[str, int] | None = None
    has_clock: bool = True
    is_simulated: bool = False
    method: str | None = None

    @classmethod
    def of(cls, run: Path) -> Source:
        """Read a trace file or run directory.

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
        """
        taken = _Taken()
        for number, record in enumerate(read_records(run, payloads=False), 1):
            try:
                taken.take(record)
            except RuleError as error:
                raise fault(trace_path(run), number, str(error)) from None
        about = _side(run)
        method = about.get("method")
        return cls(
            taken.watch.graph,
            taken.clock,
            taken.recorded or taken.found,
            taken.heals,
            taken.failed,
            taken.judged,
            is_simulated=about.get("agents_are") == "simulated",
            method=method if isinstance(method, str) else None,
        )

    @classmethod
    def of_graph(cls, graph: InteractionGraph) -> Source:
        """A graph alone: it has no clock, so that a record is as long as any other."""
        return cls(graph, range(0, (graph.t + 1) * 1_000_000, 1_000_000), has_clock=False)


@dataclass
class _Taken:
    """What is kept while a trace is read."""

    watch: Watch = field(default_factory=lambda: Watch(standard()))
    clock: array[int] = field(default_factory=lambda: array("q"))
    recorded: list[FindingRow] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    heals: list[HealRow] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    judged: dict[str, int] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        self.found += self.watch.feed(record)
        self.clock.append(record.us)
        if isinstance(record, FindingRow):
            self.recorded.append(record)
        elif isinstance(record, HealRow):
            self.heals.append(record)
        elif isinstance(record, End) and record.error is not None:
            self.failed.add(record.activation)
        elif isinstance(record, Deliver) and self.watch.graph.event(record.event).final:
            self.judged.setdefault(record.event, record.t)


def _side(run: Path) -> Mapping[str, Any]:
    """The side file, if there is one that makes sense: a picture can do without."""
    if not (run.is_dir() and (run / SIDE).exists()):
        return {}
    try:
        return read_side(run)
    except SettingsError:
        return {}
