"""A team that stands still: work is waiting, and no agent works on it."""

from __future__ import annotations

from typing import NamedTuple

from dig.graph.graph import InteractionGraph
from dig.graph.records import End, Record, micros

SHORT_US = 2_000_000
"""The length of a standstill that is not worth a word."""


class Standstill(NamedTuple):
    """A standstill, in microseconds on the run's clock.

    Attributes:
        since_us: The end of the last activation that got on with the work.
        due_us: The moment from which the monitor takes that for a deadlock.
    """

    since_us: int
    due_us: int


class Progress:
    """Follows a run, and knows when its team got on with the work last."""

    def __init__(self) -> None:
        """Begin before the first record."""
        self._us = 0

    def follow(self, record: Record, graph: InteractionGraph) -> None:
        """Take a record into account that the graph has just applied."""
        if isinstance(record, End) and graph.ended is not None and graph.ended.is_progress:
            self._us = record.us

    def standstill(self, graph: InteractionGraph) -> Standstill | None:
        """The standstill that the team is in; ``None``: it is in none."""
        if graph.t < 0 or graph.finished or graph.activations or not graph.open_events():
            return None
        return Standstill(self._us, self._us + micros(graph.run.limits.dl_window_s))
