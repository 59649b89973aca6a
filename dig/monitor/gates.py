"""Gates: keep an event held until a decision, or until the deadline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

from dig.detectors.interventions import Intervention
from dig.errors import PART_ERRORS
from dig.graph.records import SYSTEM, WAITS, micros

from .healing import Healing
from .holds import Holds
from .messages import Asked, Gate, Hold, Proposed
from .recorder import Recorder


class Gates:
    """The gates of one run; each is asked once about each agent-made event.

    Attributes:
        gates: The gates; one is known by its place here.
        deciding: The events that gates keep, each with the places of these gates and what each
            wished. A person who decides about healing keeps one, too: by a negative number, that
            of the finding's record.
    """

    def __init__(
        self, recorder: Recorder, holds: Holds, healing: Healing, gates: Sequence[Gate]
    ) -> None:
        """Begin with nothing kept."""
        self.gates = tuple(gates)
        self._recorder = recorder
        self._holds = holds
        self._healing = healing
        self._asked_events: set[str] = set()
        self._order = count()
        self._late: list[tuple[int, int, str, int]] = []  # when, an order, event, a gate's place
        self.deciding: dict[str, dict[int, Hold]] = {}

    def keep(self, event: str) -> bool:
        """Ask the gates about an event due for release; return whether a gate keeps it."""
        if event in self.deciding:
            return True
        state = self._recorder.graph.event(event)
        if not self.gates or state.by in (None, SYSTEM) or event in self._asked_events:
            return False
        if not (state.flight or state.final):
            return False
        self._asked_events.add(event)  # before asking: one that is held again is not asked about
        holds = {place: self._wish(gate, event) for place, gate in enumerate(self.gates)}
        wishes = {place: hold for place, hold in holds.items() if hold is not None}
        if not wishes:
            return False
        self.deciding[event] = wishes
        names = [_name(self.gates[place]) for place in wishes]
        limit_s = max(hold.seconds for hold in wishes.values())
        self._recorder.incident(WAITS, {"event": event, "gates": names, "limit_s": limit_s})
        for place, hold in wishes.items():
            # At least a microsecond later: the host is to see the question before its deadline.
            due = self._recorder.now + max(1, micros(hold.seconds))
            heappush(self._late, (due, next(self._order), event, place))
            shown = self._holds.payloads.pending(event)
            self._recorder.effects.append(Asked(self.gates[place], shown))
        return True

    def keep_for(self, proposed: Proposed, event: str) -> None:
        """Keep a held event until a person has decided about healing."""
        if event not in self.deciding:
            detail = {"event": event, "finding": proposed.row, "limit_s": proposed.seconds}
            self._recorder.incident(WAITS, detail)
        self.deciding.setdefault(event, {})[-proposed.row] = Hold(proposed.seconds)

    def give_up(self, proposed: Proposed, event: str) -> None:
        """Stop keeping an event for a person; hold it again, if no other reason is left."""
        deciding = self.deciding.get(event, {})
        if deciding.pop(-proposed.row, None) is not None and not deciding:
            del self.deciding[event]
            if event in self._holds.payloads:
                self._holds.hold(event)

    def resolve(
        self, gate: Gate, event: str, decided: Iterable[Intervention] | None, error: str | None
    ) -> None:
        """Take a gate's decision or failure; a late or second decision has no effect.

        Args:
            gate: The gate.
            event: The event that it keeps.
            decided: The changes that are made to the event.
            error: The error's text, if the gate failed.
        """
        place = next((i for i, other in enumerate(self.gates) if other is gate), -1)
        if place not in self.deciding.get(event, {}):
            return
        wishes: list[Intervention] = []
        try:
            wishes = list(decided or ())
            for intervention in wishes:
                self._healing.check(intervention)
        except PART_ERRORS as nonsense:  # a gate must never be able to stop a team
            error = error or f"decided nonsense: {nonsense!r}"
        if error is not None:
            self._recorder.report_component_failure(f"gate {_name(gate)}", error)
            wishes = []
        if not self._recorder.is_over:
            self._carry_out_decision(place, event, wishes)

    def forget(self) -> None:
        """Forget evicted events, and the deadlines of decided gates."""
        # Filtering breaks the order of a heap.
        self._late = [late for late in self._late if late[3] in self.deciding.get(late[2], {})]
        heapify(self._late)
        self._asked_events = {
            event for event in self._asked_events if self._recorder.graph.knows(event)
        }

    def deadline(self) -> int | None:
        """The next deadline of a gate, in microseconds."""
        while self._late and self._late[0][3] not in self.deciding.get(self._late[0][2], {}):
            heappop(self._late)  # it has decided in time
        return self._late[0][0] if self._late else None

    def overrule_late(self) -> None:
        """Decide for the gates after their deadline."""
        while (due := self.deadline()) is not None and due <= self._recorder.now:
            if self._recorder.is_over:
                return
            _, _, event, place = heappop(self._late)
            hold = self.deciding[event][place]
            detail = {"gate": _name(self.gates[place]), "event": event, "seconds": hold.seconds}
            self._recorder.incident("gate deadline passed", detail)
            self._carry_out_decision(place, event, hold.otherwise)

    def _wish(self, gate: Gate, event: str) -> Hold | None:
        try:
            hold = gate.hold(self._recorder.graph, self._holds.payloads.pending(event))
            if hold is not None:
                micros(hold.seconds)  # raises, if it is no time
                for intervention in hold.otherwise:
                    self._healing.check(intervention)
            return hold
        except PART_ERRORS as error:  # a gate must never be able to stop a team
            self._recorder.report_component_failure(f"gate {_name(gate)}", f"raised {error!r}")
            return None

    def _carry_out_decision(self, place: int, event: str, decided: Sequence[Intervention]) -> None:
        deciding = self.deciding[event]
        del deciding[place]
        if event in self._holds.payloads:
            self._healing.apply(event, decided)
        if not deciding:  # the last of its gates: it is released in this call
            del self.deciding[event]
            self._holds.hold(event)


def _name(gate: Gate) -> str:
    return str(getattr(gate, "name", type(gate).__name__))
