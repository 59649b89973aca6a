"""Release: from held to delivered, by way of gates and delivery policies.

What a call holds is released at its end, in the order in which it was held. A gate may keep an
event longer; later events for the same recipient then wait behind it, so that each recipient
gets them in the order in which they were held, and nobody else waits. Delivery policies are
asked when their time has come, in seconds or in records.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from .findings import Gate, Hold, Intervention
from .messages import Asked, DeliveryPolicy, Later, Situation, Step, are_names
from .records import SYSTEM, micros

if TYPE_CHECKING:
    from .ledger import Ledger
    from .treatment import Treatment

MOST_IN_A_ROW = 100
"""How often policies are asked about an event while nothing else happens."""


class Release:
    """Everything that is emitted and not yet delivered."""

    def __init__(self, ledger: Ledger, treatment: Treatment, gates: Sequence[Gate]) -> None:
        """Begin with nothing held."""
        self._ledger = ledger
        self._graph = ledger.graph
        self._gates = tuple(gates)
        self._treatment = treatment
        self._asked: set[str] = set()  # events that gates have been asked about
        self._deciding: dict[str, dict[int, Hold]] = {}  # event -> gates, by their place
        self._lanes: dict[str, deque[str]] = {}  # agent -> events behind a gate, oldest first
        self._order = count()
        self._timers: list[tuple[int, int, str, DeliveryPolicy | int]] = []  # or a gate's place
        self._counters: list[tuple[int, int, str, DeliveryPolicy]] = []
        self._begun = 0  # activations, when somebody last looked
        self._in_a_row: Counter[str] = Counter()  # how often policies were asked since, by event

    # --- what the monitor asks for ---

    def plan(self, event: str, step: Step) -> None:
        """Remember when a delivery policy is to be asked again."""
        for part in _parts(step):
            if part.then is None:
                continue
            if part.in_t is not None:
                due = self._graph.t + max(1, part.in_t)
                heappush(self._counters, (due, next(self._order), event, part.then))
            else:
                due = self._ledger.now + max(1, micros(part.in_s or 0))
                heappush(self._timers, (due, next(self._order), event, part.then))

    @property
    def is_quiet(self) -> bool:
        """Whether no agent is at work or waits to be started, and no gate is deciding."""
        return not (self._graph.activations or self._ledger.ready or self._deciding)

    def deadline(self) -> int | None:
        """The moment at which something is due, in microseconds, if nothing comes before."""
        self._forget_settled()
        if self._timers:
            return self._timers[0][0]
        if self._counters and self.is_quiet:
            return self._ledger.now
        return None

    def begin_call(self) -> None:
        """Somebody asks something of the monitor: while agents work, that is progress enough."""
        if not self.is_quiet:
            self._in_a_row.clear()

    def forget(self, agent: str) -> None:
        """An agent has left; nothing waits for it any more."""
        self._lanes.pop(agent, None)

    def all(self) -> None:
        """Release what is held, in order, and do what policies and gates have made due."""
        held, self._ledger.held = self._ledger.held, {}
        for event in held:
            if self._ledger.is_over:
                return
            if event in self._ledger.post and not self._is_gated(event):
                self._let_go(event)
        self._run_timers()

    # --- release ---

    def _let_go(self, event: str) -> None:
        state = self._graph.event(event)
        if state.final and not state.flight:
            if not (self._graph.is_accepted(event) or event in self._ledger.diverted):
                self._ledger.accept(event)
                self._treatment.renew()
            return
        for agent in tuple(state.flight):
            lane = self._lanes.get(agent)
            if lane:
                if event not in lane:
                    lane.append(event)
            else:
                self._ledger.deliver(event, agent)

    def _open_lanes(self) -> None:
        """Deliver what waited behind events that no gate keeps any more."""
        for agent, lane in tuple(self._lanes.items()):
            while lane and lane[0] not in self._deciding:
                event = lane.popleft()
                if agent in self._graph.event(event).flight:
                    self._ledger.deliver(event, agent)
            if not lane:
                self._lanes.pop(agent, None)

    # --- gates ---

    def _is_gated(self, event: str) -> bool:
        """Whether a gate keeps an event; each is asked once about each agent-made event."""
        if event in self._deciding:
            return True
        state = self._graph.event(event)
        if not self._gates or state.by in (None, SYSTEM) or event in self._asked:
            return False
        if not (state.flight or state.final):
            return False
        self._asked.add(event)
        asked = {i: self._wish(gate, event) for i, gate in enumerate(self._gates)}
        wishes = {i: hold for i, hold in asked.items() if hold is not None}
        if not wishes:
            return False
        self._deciding[event] = wishes
        for agent in state.flight:
            self._lanes.setdefault(agent, deque()).append(event)
        for place, hold in wishes.items():
            due = self._ledger.now + max(1, micros(hold.seconds))
            heappush(self._timers, (due, next(self._order), event, place))
            self._ledger.effect(Asked(self._gates[place], self._ledger.post.pending(event)))
        return True

    def _wish(self, gate: Gate, event: str) -> Hold | None:
        try:
            hold = gate.hold(self._graph, self._ledger.post.pending(event))
            if hold is not None:
                micros(hold.seconds)  # raises, if it is no time
                for intervention in hold.otherwise:
                    self._treatment.check(intervention)
            return hold
        except Exception as error:  # a gate must never be able to stop a team
            self._ledger.fault(f"gate {_name(gate)}", f"raised {error!r}")
            return None

    def resolve(
        self, gate: Gate, event: str, decided: Iterable[Intervention] | None, error: str | None
    ) -> None:
        """A gate has decided, or failed; what comes too late, or twice, is not looked at."""
        place = next((i for i, known in enumerate(self._gates) if known is gate), -1)
        if place not in self._deciding.get(event, {}):
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
            if self._ledger.is_over:
                return
        self._decided(place, event, wishes)

    def _decided(self, place: int, event: str, decided: Sequence[Intervention]) -> None:
        deciding = self._deciding[event]
        del deciding[place]
        if event in self._ledger.post:
            self._treatment.apply(event, decided)
        if not deciding:
            del self._deciding[event]
            self._open_lanes()
            self._ledger.held[event] = None

    # --- policies ---

    def _run_timers(self) -> None:
        self._forget_settled()
        now = self._ledger.now
        while self._timers and self._timers[0][0] <= now and not self._ledger.is_over:
            _, _, event, what = heappop(self._timers)
            if isinstance(what, int):
                self._gate_is_late(event, what)
            else:
                self._ask_policy(event, what)
        while self._counters and not self._ledger.is_over and self._counter_is_due():
            _, _, event, policy = heappop(self._counters)
            if self._is_useful(event, policy):
                self._ask_policy(event, policy)

    def _counter_is_due(self) -> bool:
        nothing_else = self.is_quiet and not self._timers and not self._ledger.held
        return self._counters[0][0] <= self._graph.t or nothing_else

    def _is_useful(self, event: str, policy: DeliveryPolicy) -> bool:
        """Whether a policy may be asked again, and not over and over while nothing happens."""
        begun = len(self._graph.history.activation_ids)
        if begun != self._begun:
            self._begun = begun
            self._in_a_row.clear()
        self._in_a_row[event] += 1
        if self._in_a_row[event] <= MOST_IN_A_ROW:
            return True
        self._ledger.fault(_policy_name(policy), f"never comes to rest about event {event!r}")
        return False

    def _gate_is_late(self, event: str, place: int) -> None:
        hold = self._deciding.get(event, {}).get(place)
        if hold is not None:
            detail = {"gate": _name(self._gates[place]), "event": event, "seconds": hold.seconds}
            self._ledger.incident("gate deadline passed", detail)
            self._decided(place, event, hold.otherwise)

    def ask(self, policy: DeliveryPolicy, now: Situation) -> Step:
        """Ask a delivery policy; one that fails leaves things as they are."""
        try:
            step = policy.step(now)
            _check_step(step)
            return step
        except Exception as error:  # a policy must never be able to stop a team
            self._ledger.fault(_policy_name(policy), f"raised {error!r}")
            return Step()

    def _ask_policy(self, event: str, policy: DeliveryPolicy) -> None:
        if event not in self._ledger.post:
            return
        step = self.ask(policy, Situation(self._graph, self._ledger.post.sender(event), event))
        if step.expires:
            self._ledger.expire(event)
            self._forget_plans(event)
            return
        flight = tuple(self._graph.event(event).flight)
        if step.to is not None and tuple(step.to) != flight:
            self._ledger.redirect(event, tuple(step.to))
        self.plan(event, step)
        if step.arrives:
            self._ledger.held[event] = None

    def _forget_plans(self, event: str) -> None:
        """Whatever else was to be asked about an event, nobody will be."""
        self._timers = [x for x in self._timers if x[2] != event or isinstance(x[3], int)]
        self._counters = [x for x in self._counters if x[2] != event]
        heapify(self._timers)
        heapify(self._counters)

    def _forget_settled(self) -> None:
        """Forget the next timers that have nothing to do any more, so that nobody waits for them.

        An event that somebody has consumed needs no policy; a gate that has decided is not late.
        """
        while self._timers and self._is_settled(*self._timers[0][2:]):
            heappop(self._timers)
        while self._counters and self._is_settled(*self._counters[0][2:]):
            heappop(self._counters)

    def _is_settled(self, event: str, what: DeliveryPolicy | int) -> bool:
        if isinstance(what, int):
            return what not in self._deciding.get(event, {})
        return event not in self._ledger.post


def _name(gate: Gate) -> str:
    return str(getattr(gate, "name", type(gate).__name__))


def _policy_name(policy: DeliveryPolicy) -> str:
    return f"delivery policy {type(policy).__name__}"


def _parts(step: Step) -> tuple[Step | Later, ...]:
    return (step, *step.also)


def _check_step(step: object) -> None:
    """Refuse what a delivery policy cannot mean.

    Raises:
        TypeError: It is no step, or names no agents, or a time or a policy is none.
        ValueError: A time is not a number.
        OverflowError: A time never comes.
    """
    if not isinstance(step, Step) or not (step.to is None or are_names(step.to)):
        raise TypeError(f"{step!r} is no Step with a list of agents")
    for part in _parts(step):
        if part.then is not None and not callable(getattr(part.then, "step", None)):
            raise TypeError(f"{part.then!r} is no delivery policy")
        micros(part.in_s or 0)
        if not isinstance(part.in_t or 0, int):
            raise TypeError(f"in_t is {part.in_t!r}, which is no number of records")
