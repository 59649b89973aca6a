"""Release: from held to delivered.

What a call holds is released at its end, in the order in which it was held. A gate may keep an
event longer; later events for the same recipient then wait behind it, so that each recipient
gets them in the order in which they were held, and nobody else waits.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gates import Gates
    from .healing import Treatment
    from .recorder import Ledger
    from .schedule import Policies


class Release:
    """Everything that is emitted and not yet delivered."""

    def __init__(
        self, ledger: Ledger, treatment: Treatment, gates: Gates, policies: Policies
    ) -> None:
        """Begin with nobody waiting."""
        self._ledger = ledger
        self._treatment = treatment
        self._gates = gates
        self._policies = policies
        # agent -> what waits behind a gate, oldest first: events, and their numbers in `flight`
        self._lanes: dict[str, deque[tuple[str, int]]] = {}

    @property
    def is_quiet(self) -> bool:
        """Whether no agent is at work or waits to be started, and no gate is deciding."""
        return not (self._ledger.graph.activations or self._ledger.ready or self._gates.deciding)

    def deadline(self) -> int | None:
        """The moment at which something is due, in microseconds, if nothing comes before."""
        if not (self._gates.deciding or self._policies.are_planned):
            return None
        times = (self._gates.deadline(), self._policies.deadline(self.is_quiet))
        return min((us for us in times if us is not None), default=None)

    def forget(self, agent: str) -> None:
        """An agent has left; nothing waits for it any more."""
        self._lanes.pop(agent, None)

    def all(self) -> None:
        """Release what is held, in order, and do what gates and policies have made due."""
        if self._lanes:
            self._open_lanes()
        held, self._ledger.held = self._ledger.held, {}
        for event in held:
            if self._ledger.is_over:
                return
            if event not in self._ledger.post:
                continue
            if not self._gates.keep(event):
                self._let_go(event)
            else:
                self._wait(event)
        if self._gates.deciding:
            self._gates.overrule_late()
        if self._policies.are_planned:
            self._policies.run_timers()
            while self._policies.run_counter(self.is_quiet):
                pass

    def _wait(self, event: str) -> None:
        """Let what comes later for the recipients of a kept event wait behind it."""
        for agent, number in self._ledger.graph.event(event).flight.items():
            lane = self._lanes.setdefault(agent, deque())
            if (event, number) not in lane:
                lane.append((event, number))

    def _let_go(self, event: str) -> None:
        state = self._ledger.graph.event(event)
        if state.final and not state.flight:
            if not (self._ledger.graph.is_accepted(event) or event in self._ledger.diverted):
                self._ledger.accept(event)
                self._treatment.renew()
            return
        if len(state.flight) > 1:
            self._treatment.prevent(event)
        for agent, number in tuple(state.flight.items()):
            lane = self._lanes.get(agent)
            if not lane:
                self._ledger.deliver(event, agent)
                self._policies.hurry(agent)
            elif (event, number) not in lane:  # else it keeps its place
                lane.append((event, number))

    def _open_lanes(self) -> None:
        """Deliver what waited behind events that no gate keeps any more."""
        for agent, lane in tuple(self._lanes.items()):
            while lane and lane[0][0] not in self._gates.deciding:
                event, number = lane.popleft()
                if event not in self._ledger.post:
                    continue
                if self._ledger.graph.event(event).flight.get(agent) == number:
                    self._ledger.deliver(event, agent)
            if not lane:
                self._lanes.pop(agent, None)
