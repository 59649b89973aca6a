"""What a host could do of an intervention, as it was recorded.

Whether a wrapped team can take a message back, say, is known to its wrapper alone, and may change
from moment to moment. What it could not do is in the trace, as an incident.
"""

from __future__ import annotations

from dig.detectors.interventions import Act, Create, Inject, Intervention, Reroute
from dig.graph.graph import InteractionGraph
from dig.graph.records import IncidentRow

from .tape import Tape

DOWNGRADED = "downgraded"
"""The incident that says that something lesser was done of an intervention, or nothing."""


class AsRecorded:
    """A `Fit` that leaves of an intervention what was left of it in the recorded run."""

    def __init__(self, tape: Tape, free_from: int | None) -> None:
        """Look at a tape; `free_from`: the first record that need not be as it was recorded."""
        self._tape = tape
        self._free_from = free_from

    def __call__(
        self, graph: InteractionGraph, wish: Act
    ) -> tuple[Intervention | None, str | None]:
        """What was possible of an intervention, and why not all of it."""
        if self._free_from is not None and graph.t + 1 >= self._free_from:
            return wish, None
        recorded = self._tape.ahead()
        row = None if recorded is None else recorded.record
        if not (isinstance(row, IncidentRow) and row.what == DOWNGRADED):
            return wish, None
        detail = row.detail if isinstance(row.detail, dict) else {}
        return _lesser(wish, detail.get("instead")), str(detail.get("reason"))


def _lesser(wish: Act, done: object) -> Intervention | None:
    """What a host has done instead of an intervention."""
    if done == "inject" and isinstance(wish, Reroute):
        return Inject(wish.event, wish.note)
    if done == "create" and isinstance(wish, Reroute):
        return Create(wish.note, wish.to)
    return wish if done == type(wish).__name__.lower() else None
