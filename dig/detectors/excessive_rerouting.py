"""ER, excessive rerouting: work is passed on and on, and nobody consumes it.

Paper, section 5 (5).
"""

from __future__ import annotations

from collections.abc import Iterator

from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.records import End, Record
from dig.state import by_number


class ExcessiveRerouting:
    """Raises ER at every reroute of an event beyond `reroute_limit`, over all its copies."""

    pattern = "ER"
    kinds = (End,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise ER for what the activation that ended has rerouted once too often."""
        assert isinstance(record, End)
        rerouted = [graph.event(f.event) for f in record.fates if f.fate == "reroute"]
        for event in sorted(rerouted, key=by_number):
            if event.work and len(event.reroutes) > graph.run.limits.reroute_limit:
                path = list(event.reroutes)
                yield Finding("ER", record.t, record.us, {"event": event.id}, {"path": path})
