"""A run so far: graph, verdict, costs, and standstills.

The terminal, the page, lists of runs and explanations follow a run with the same class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.watch import Watch
from dig.graph.records import End, Record, micros
from dig.traces.usage import Costs

SHORT_US = 2_000_000
"""The length of a standstill that is not worth a word."""


class Standstill(NamedTuple):
    """A time without an agent at work although work is waiting, in microseconds.

    Attributes:
        since_us: The end of the last activation that got on with the work.
        due_us: The moment from which the monitor takes the standstill for a deadlock.
    """

    since_us: int
    due_us: int


class RunFollower:
    """Follows a run, record by record.

    Attributes:
        watch: The graph with the detectors around it.
        graph: The graph.
        so_far: The verdict.
        costs: The sums of usage.
    """

    def __init__(self, detectors: Sequence[Detector] = ()) -> None:
        """Begin before the first record.

        Args:
            detectors: Fresh detectors, for a trace without findings; by default none.
        """
        self.watch = Watch(detectors)
        self.graph = self.watch.graph
        self.so_far = RunSoFar(self.graph)
        self.costs = Costs()
        self._progress_us = 0

    def follow(self, record: Record) -> list[Finding]:
        """Take a record into account; returns the findings of the detectors.

        Raises:
            RuleError: The record contradicts those before it.
        """
        # The graph comes first: the verdict asks it about the record that was just applied.
        findings = self.watch.feed(record)
        self.so_far(record, findings)
        self.costs(record)
        if isinstance(record, End) and self.graph.ended.is_progress:
            self._progress_us = record.us
        return findings

    @property
    def standstill(self) -> Standstill | None:
        """The present standstill; ``None``: an agent works, or there is no work."""
        graph = self.graph
        if graph.t < 0 or graph.finished or graph.activations or not graph.open_events():
            return None
        due_us = self._progress_us + micros(graph.run.limits.dl_window_s)
        return Standstill(self._progress_us, due_us)
