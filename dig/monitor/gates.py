"""Gates: who decides about an event that is held, until when, and what happens then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from dig.detectors.interventions import Intervention
from dig.graph.records import SYSTEM, micros

from .messages import Asked, Gate, Hold

if TYPE_CHECKING:
    from .healing import Treatment
    from .recorder import Ledger


class Gates:
    """The gates of one run; each is asked once about each agent-made event.

    Attributes:
        deciding: The events that gates keep, and for each the gates (by their place) with what
            they wished.
    """

    def __init__(self, ledger: Ledger, treatment: Treatment, gates: Sequence[Gate]) -> None:
        """Begin with nothing kept."""
        self._ledger = ledger
        self._treatment = treatment
        self._gates = tuple(gates)
        self._asked: set[str] = set()
        self._order = count()
        self._late: list[tuple[int, int, str, int]] = []  # when, an order, event, a gate's place
        self.deciding: dict[str, dict[int, Hold]] = {}

    def keep(self, event: str) -> bool:
        """Whether a gate keeps an event that is about to be released; asks those that may."""
        if event in self.deciding:
            return True
        state = self._ledger.graph.event(event)
        if not self._gates or state.by in (None, SYSTEM) or event in self._asked:
            return False
        if not (state.flight or state.final):
            return False
        self._asked.add(event)
        asked = {place: self._wish(gate, event) for place, gate in enumerate(self._gates)}
        wishes = {place: hold for place, hold in asked.items() if hold is not None}
        if not wishes:
            return False
        self.deciding[event] = wishes
        for place, hold in wishes.items():
            due = self._ledger.now + max(1, micros(hold.seconds))
            heappush(self._late, (due, next(self._order), event, place))
            self._ledger.effect(Asked(self._gates[place], self._ledger.post.pending(event)))
        return True

    def resolve(
        self, gate: Gate, event: str, decided: Iterable[Intervention] | None, error: str | None
    ) -> None:
        """A gate has decided, or failed; what comes too late, or twice, is not looked at."""
        place = next((i for i, known in enumerate(self._gates) if known is gate), -1)
        if place not in self.deciding.get(event, {}):
            return
        wishes: list[Intervention] = []
        try:
            wishes = list(decided or ())
            for intervention in wishes:
                self._treatment.check(intervention)
        except Exception as nonsense:  # a gate must never be able to stop a team
            error = error or f"decided nonsense: {nonsense!r}"
        if error is not None:
            self._ledger.fault(f"gate {_name(gate)}", error)
            wishes = []
        if not self._ledger.is_over:
            self._decided(place, event, wishes)

    def let_go(self) -> None:
        """Forget what nobody can find any more, and the deadlines of gates that have decided."""
        self._late = [late for late in self._late if late[3] in self.deciding.get(late[2], {})]
        heapify(self._late)
        self._asked = {event for event in self._asked if self._ledger.graph.knows(event)}

    def deadline(self) -> int | None:
        """The moment at which the next gate is late, in microseconds."""
        while self._late and self._late[0][3] not in self.deciding.get(self._late[0][2], {}):
            heappop(self._late)  # it has decided in time
        return self._late[0][0] if self._late else None

    def overrule_late(self) -> None:
        """Decide for the gates whose time is up."""
        while (due := self.deadline()) is not None and due <= self._ledger.now:
            if self._ledger.is_over:
                return
            _, _, event, place = heappop(self._late)
            hold = self.deciding[event][place]
            detail = {"gate": _name(self._gates[place]), "event": event, "seconds": hold.seconds}
            self._ledger.incident("gate deadline passed", detail)
            self._decided(place, event, hold.otherwise)

    def _wish(self, gate: Gate, event: str) -> Hold | None:
        try:
            hold = gate.hold(self._ledger.graph, self._ledger.post.pending(event))
            if hold is not None:
                micros(hold.seconds)  # raises, if it is no time
                for intervention in hold.otherwise:
                    self._treatment.check(intervention)
            return hold
        except Exception as error:  # a gate must never be able to stop a team
            self._ledger.fault(f"gate {_name(gate)}", f"raised {error!r}")
            return None

    def _decided(self, place: int, event: str, decided: Sequence[Intervention]) -> None:
        deciding = self.deciding[event]
        del deciding[place]
        if event in self._ledger.post:
            self._treatment.apply(event, decided)
        if not deciding:
            del self.deciding[event]
            self._ledger.held[event] = None


def _name(gate: Gate) -> str:
    return str(getattr(gate, "name", type(gate).__name__))
