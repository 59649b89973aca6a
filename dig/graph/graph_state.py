"""The state of a graph, and queries about the state."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from types import MappingProxyType

from dig._util.ranges import NOTHING, RangeSet

from .history import ACCEPTED, BOUNCED, EVICTED, History
from .lineage import Provenance, sources_of
from .problems import Problems
from .records import Finish, Run
from .state import ActivationState, AgentState, ClosedEvent, EventState, by_number

NO_ACTIVATION = ActivationState("", "", {}, 0)
"""Stands for the activation that ended last, as long as there is none."""


class GraphState:
    """The state of a graph, and queries about the state.

    Only `dig.graph.rewrites`, `dig.graph.retention` and `dig.graph.coverage` change it.

    Attributes:
        t: Logical time, the latest record's; -1 before the first.
        now: Wall time of the latest record in microseconds since the run began.
        run: The first record.
        history: Everything that has happened, as arrays.
        problems: The problems of the run.
        touched: The events whose place the latest record may have changed.
        changed: The kind of the latest record and what it changed, as flags of `dig.graph.records`.
        finished: The last record of the run, once it is there.
        is_over: Whether a final event was accepted, and the run is no session.
        is_restricted: Whether not every kind of record may come next: before the first one, once
            the run `is_over`, or after the last one.
        has_failed: Whether an activation has ended with an error.
        awaited: The outputs of the latest end that are still to be emitted, the next one last.
        findings: Logical time of every record of kind `finding`, in order.
        latest_provenance: The provenance of the final event that was looked at last.
        present: The present agents by name.
        running: The activations in progress by id.
        live: The events that are not closed, by id.
        open: The events that are open work.
        lineage: The roots and sources that the outputs of the latest end inherit.
        source_rank: After an eviction: the number of sources below each old number that stay.
        outputs: The outputs of the latest end.
        ended: The activation that ended last, whose outputs are awaited.
    """

    run: Run

    def __init__(self) -> None:
        self.t = -1
        self.now = 0
        self.history = History()
        self.problems = Problems(self.history, session=False)  # until the run says what it is
        self.touched: list[EventState] = []
        self.changed = 0
        self.finished: Finish | None = None
        self.is_over = False
        self.is_restricted = True
        self.has_failed = False
        self.outputs: tuple[str, ...] = ()
        self.awaited: list[str] = []
        self.findings = array("q")
        self.latest_provenance: Provenance | None = None
        self.source_rank: list[int] = []
        self.ended = NO_ACTIVATION
        self.lineage: tuple[RangeSet, RangeSet] = (NOTHING, NOTHING)
        self.present: dict[str, AgentState] = {}
        self.running: dict[str, ActivationState] = {}
        self.live: dict[str, EventState] = {}
        self.open: dict[str, EventState] = {}

    def event(self, name: str) -> EventState:
        """Find an event by id; a closed one is put together from history.

        Raises:
            KeyError: No event has this id.
        """
        event = self.live.get(name) or self.ended.by_id.get(name)
        if event is None:
            n = self.history.event_number(name)
            event = ClosedEvent(self.history, name, n, self.history.by(n))
        return event

    def find(self, name: str) -> EventState | None:
        """The event with an id; ``None``: there is none, or it was evicted."""
        return self.live.get(name) or (self.event(name) if self.knows(name) else None)

    def sources_of(self, n: int) -> RangeSet:
        """The sources of event number `n`, as source numbers."""
        live = self.live.get(self.history.event_ids[n])
        return live.sources if live is not None else sources_of(self.history, n)

    @property
    def agents(self) -> Mapping[str, AgentState]:
        """The present agents by name, in order of joining."""
        return MappingProxyType(self.present)

    @property
    def activations(self) -> Mapping[str, ActivationState]:
        """The activations in progress by id, in order of start."""
        return MappingProxyType(self.running)

    @property
    def latest_source(self) -> str:
        """The latest event from outside."""
        return self.history.event_ids[self.history.source_events[-1]]

    @property
    def event_count(self) -> int:
        """The number of events of the run, evicted ones included."""
        return self.history.gone_events + len(self.history.event_ids)

    @property
    def activation_count(self) -> int:
        """The number of activations of the run, evicted ones included."""
        return self.history.gone_activations + len(self.history.activation_ids)

    @property
    def has_evicted(self) -> bool:
        """Whether some part of the history was evicted."""
        h = self.history
        return bool(h.gone_events or h.gone_activations or h.cut)

    def open_events(self) -> list[EventState]:
        """R(t): unconsumed work within reach of some agent, as generated."""
        return sorted(self.open.values(), key=by_number)

    def orphans(self) -> dict[str, str]:
        """Unconsumed work out of reach of all agents, by id with the cause, as generated."""
        orphans = [e for e in self.live.values() if e.cause is not None]
        return {e.id: e.cause or "" for e in sorted(orphans, key=by_number)}

    def flying(self) -> list[EventState]:
        """The events of any kind on their way to an agent, as generated."""
        return sorted((e for e in self.live.values() if e.flight), key=by_number)

    def knows(self, event: str) -> bool:
        """Whether there is an event with a given id, not evicted."""
        n = self.history.event(event)
        return n is not None and not self.history.flags[n] & EVICTED

    def is_open(self, n: int) -> bool:
        """Whether event number `n` is open."""
        return self.history.event_ids[n] in self.open

    def is_accepted(self, event: str) -> bool:
        """Whether an event is final and was accepted."""
        return bool(self.history.flags[self.history.event_number(event)] & ACCEPTED)

    def is_bounced(self, event: str) -> bool:
        """Whether an event is final and was delivered to an agent."""
        return bool(self.history.flags[self.history.event_number(event)] & BOUNCED)
