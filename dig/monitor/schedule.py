"""Delivery policies at work: which is asked when, and what is done with its answer (paper, eq. 3).

The policies themselves are in `dig.monitor.policies`, or a user's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from dig.graph.records import micros

from .messages import DeliveryPolicy, Later, Output, Situation, Step, are_names

if TYPE_CHECKING:
    from .recorder import Ledger

MOST_IN_A_ROW = 100
"""How often policies are asked about an event while nothing else happens."""

_Plan = tuple[int, int, str, DeliveryPolicy]  # when, an order, event, who is asked


class _Arrive:
    """The policy of an event that was put off."""

    def step(self, now: Situation) -> Step:
        """It arrives."""
        return Step()


class Policies:
    """What is left over of delivery policies, each waiting for its time."""

    def __init__(self, ledger: Ledger) -> None:
        """Begin with nothing planned."""
        self._ledger = ledger
        self._order = count()
        self._timers: list[_Plan] = []  # when: in microseconds
        self._counters: list[_Plan] = []  # when: in logical time
        self._begun = 0  # activations, when somebody last looked
        self._in_a_row: Counter[str] = Counter()  # how often they were asked since, by event
        self._put_off: dict[str, list[str]] = {}  # agent -> what `put_off` keeps from it

    def ask(self, policy: DeliveryPolicy, now: Situation) -> Step:
        """Ask a policy; one that fails leaves things as they are."""
        try:
            step = policy.step(now)
            _check_step(step)
            return step
        except Exception as error:  # a policy must never be able to stop a team
            self._ledger.fault(_name(policy), f"raised {error!r}")
            return Step()

    def emit(self, name: str, by: str | None, sender: str | None, output: Output) -> None:
        """Generate an event, and hold it if it is to arrive now."""
        to, step = tuple(output.to), Step()
        if output.policy is not None and not output.final:
            step = self.ask(output.policy, Situation(self._ledger.graph, sender))
            to = to if step.to is None else tuple(step.to)
        self._ledger.emit(name, by, sender, output, to)
        self.plan(name, step)
        if step.arrives:
            self._ledger.held[name] = None

    def plan(self, event: str, step: Step) -> None:
        """Remember when what is left over of a policy is to be asked."""
        parts: tuple[Step | Later, ...] = (step, *step.also)
        for part in parts:
            if part.then is None:
                continue
            if part.in_t is not None:
                due = self._ledger.graph.t + max(1, part.in_t)
                heappush(self._counters, (due, next(self._order), event, part.then))
            else:
                due = self._ledger.now + max(1, micros(part.in_s or 0))
                heappush(self._timers, (due, next(self._order), event, part.then))

    def put_off(self, event: str, to: Iterable[str], in_s: float) -> None:
        """Let an event arrive later; together with whatever else arrives before, for its agent."""
        self.plan(event, Step(then=_Arrive(), in_s=in_s))
        for agent in to:
            self._put_off.setdefault(agent, []).append(event)

    def hurry(self, agent: str) -> None:
        """Something has arrived at an agent: what was put off for it may come too."""
        for event in self._put_off.pop(agent, ()):
            if event in self._ledger.post:
                self._forget(event)
                self._ledger.held[event] = None

    def abandon(self, agent: str) -> None:
        """An agent has left: nothing that was put off comes to it any more."""
        for event in self._put_off.pop(agent, ()):
            self._forget(event)

    def deadline(self, is_quiet: bool) -> int | None:
        """The moment at which one is asked, in microseconds; now, if nothing else can happen."""
        self._forget_settled()
        if self._timers:
            return self._timers[0][0]
        return self._ledger.now if self._counters and is_quiet else None

    @property
    def are_planned(self) -> bool:
        """Whether one is to be asked some time."""
        return bool(self._timers or self._counters)

    @property
    def events(self) -> set[str]:
        """The events about which one is to be asked."""
        return {plan[2] for plan in (*self._timers, *self._counters)}

    def begin_call(self, is_quiet: bool) -> None:
        """Somebody asks something of the monitor: while agents work, that is progress enough."""
        if not is_quiet:
            self._in_a_row.clear()

    def run_timers(self) -> None:
        """Ask what is due by wall time."""
        self._forget_settled()
        while self._timers and self._timers[0][0] <= self._ledger.now and not self._ledger.is_over:
            _, _, event, policy = heappop(self._timers)
            self._ask_again(event, policy)

    def run_counter(self, is_quiet: bool) -> bool:
        """Ask one that is due by logical time, or because nothing else can happen."""
        if not self._counters or self._ledger.is_over:
            return False
        nothing_else = is_quiet and not self._timers and not self._ledger.held
        if self._counters[0][0] > self._ledger.graph.t and not nothing_else:
            return False
        _, _, event, policy = heappop(self._counters)
        if self._is_useful(event, policy):
            self._ask_again(event, policy)
        return True

    def _ask_again(self, event: str, policy: DeliveryPolicy) -> None:
        ledger = self._ledger
        if event not in ledger.post:
            return
        step = self.ask(policy, Situation(ledger.graph, ledger.post.sender(event), event))
        if step.expires:
            ledger.expire(event)
            self._forget(event)
            return
        if step.to is not None and tuple(step.to) != tuple(ledger.graph.event(event).flight):
            ledger.redirect(event, tuple(step.to))
        self.plan(event, step)
        if step.arrives:
            ledger.held[event] = None

    def _is_useful(self, event: str, policy: DeliveryPolicy) -> bool:
        """Whether a policy may be asked again, and not over and over while nothing happens."""
        begun = self._ledger.graph.activation_count
        if begun != self._begun:
            self._begun = begun
            self._in_a_row.clear()
        self._in_a_row[event] += 1
        if self._in_a_row[event] <= MOST_IN_A_ROW:
            return True
        self._ledger.fault(_name(policy), f"never comes to rest about event {event!r}")
        return False

    def _forget(self, event: str) -> None:
        """Whatever else was to be asked about an event, nobody will be."""
        self._timers = [plan for plan in self._timers if plan[2] != event]
        self._counters = [plan for plan in self._counters if plan[2] != event]
        heapify(self._timers)
        heapify(self._counters)

    def _forget_settled(self) -> None:
        """Forget what comes next about events that are used up, so that nobody waits for it."""
        for plans in (self._timers, self._counters):
            while plans and plans[0][2] not in self._ledger.post:
                heappop(plans)


def _name(policy: DeliveryPolicy) -> str:
    return f"delivery policy {type(policy).__name__}"


def _check_step(step: object) -> None:
    """Refuse what a delivery policy cannot mean.

    Raises:
        TypeError: It is no step, or names no agents, or a time or a policy is none.
        ValueError: A time is not a number.
        OverflowError: A time never comes.
    """
    if not isinstance(step, Step) or not (step.to is None or are_names(step.to)):
        raise TypeError(f"{step!r} is no Step with a list of agents")
    parts: tuple[Step | Later, ...] = (step, *step.also)
    for part in parts:
        if part.then is not None and not callable(getattr(part.then, "step", None)):
            raise TypeError(f"{part.then!r} is no delivery policy")
        micros(part.in_s or 0)
        if not isinstance(part.in_t or 0, int):
            raise TypeError(f"in_t is {part.in_t!r}, which is no number of records")
