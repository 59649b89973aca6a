"""The schedule of delivery policies: asks each in time, and acts accordingly (paper, eq. 3).

The policies themselves are in `dig.monitor.policies`, or a user's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import count

from dig.errors import PART_ERRORS
from dig.graph.records import Leave, micros

from .holds import Holds
from .messages import DeliveryPolicy, Later, Output, Situation, Step
from .recorder import Recorder
from .sanitize import are_names

_Plan = tuple[int, int, str, DeliveryPolicy]  # when, an order, event, the policy to ask
_RecordedPlan = tuple[int, int, int, str, DeliveryPolicy]  # the record, when, and so on


class _Arrive:
    """The policy of an event with a later arrival."""

    def step(self, now: Situation) -> Step:
        """The event arrives."""
        return Step()


class DeliverySchedule:
    """The delivery policies still to be asked, each with a time.

    Attributes:
        timers: The questions for a moment, in microseconds; a heap.
        recorded: The questions for the places where they were asked in a recorded run; a heap.
        postponed: By agent: the events that `schedule` lets arrive later.
    """

    def __init__(self, recorder: Recorder, holds: Holds) -> None:
        """Begin with nothing planned."""
        self.timers: list[_Plan] = []
        self.recorded: list[_RecordedPlan] = []
        self.postponed: dict[str, list[str]] = {}
        self._recorder = recorder
        self._holds = holds
        self._graph = recorder.graph
        self._order = count()

    def emit(
        self, name: str, by: str | None, sender: str | None, output: Output, policy: DeliveryPolicy
    ) -> None:
        """Generate an event with a delivery policy, and hold it if it is to arrive now.

        Args:
            name: Its id.
            by: The activation that generates it; ``None``: it comes from outside.
            sender: The agent that generates it, or ``None``.
            output: The output that the event carries.
            policy: Decides its recipients, now and later.
        """
        # Asked before the event exists, so that its record has the recipients from the beginning.
        step = self._ask(policy, Situation(self._graph, sender))
        to = tuple(output.to) if step.to is None else tuple(step.to)
        self._holds.emit(name, by, sender, output, to, hold=False)
        self._plan(name, step)
        if step.arrives:
            self._holds.hold(name)

    def schedule(self, event: str, to: Iterable[str], in_s: float) -> None:
        """Let an event arrive after `in_s` seconds, or with the agent's next event."""
        self._plan(event, Step(then=_Arrive(), in_s=in_s))
        for agent in to:
            self.postponed.setdefault(agent, []).append(event)

    def deliver_with_next(self, agent: str) -> None:
        """Hold the events scheduled for an agent, after a delivery to the agent."""
        for event in self.postponed.pop(agent, ()):
            if event in self._holds.payloads:
                self._cancel(event)
                self._holds.hold(event)

    def take_out(self, agent: str) -> None:
        """Let an agent leave; scheduled and waiting events for the agent are dropped."""
        # Read first: after the record the graph does not know the agent any more.
        answers = [e.id for e in self._graph.agents[agent].incoming.values() if e.final]
        self._recorder.write(Leave(*self._recorder.moment, agent))
        self._holds.agent_left(agent)
        for event in self.postponed.pop(agent, ()):
            self._cancel(event)
        for event in answers:
            self._holds.take_as_it_is(event)

    def release(self, event: str) -> None:
        """Hold an event that a policy keeps, and ask no policy about the event any more."""
        self._cancel(event)
        self._holds.hold(event)

    def deadline(self) -> int | None:
        """When the next policy is asked, in microseconds."""
        self._drop_settled()
        timed = [plan[0] for plan in self.timers[:1]]
        for t, us, *_ in self.recorded[:1]:
            timed.append(us if self._graph.t + 1 >= t else us + 1)
        return min(timed, default=None)

    @property
    def events(self) -> set[str]:
        """The events with a policy to be asked."""
        return {*(plan[3] for plan in self.recorded), *(plan[2] for plan in self.timers)}

    def run_recorded(self) -> None:
        """Ask again at the recorded places, or a moment later if the run is another one.

        An act has its record's number and moment, so among what is done at that moment it has its
        place.
        """
        self._drop_settled()
        now = self._recorder.now
        while self.recorded and not self._recorder.is_over:
            t, us, _, event, policy = self.recorded[0]
            if not (us < now or (us == now and self._graph.t + 1 >= t)):
                break
            heappop(self.recorded)
            self._ask_again(event, policy)

    def run_timers(self) -> None:
        """Ask the policies due by wall time."""
        self._drop_settled()
        while (
            self.timers and self.timers[0][0] <= self._recorder.now and not self._recorder.is_over
        ):
            _, _, event, policy = heappop(self.timers)
            self._ask_again(event, policy)

    def _ask_again(self, event: str, policy: DeliveryPolicy) -> None:
        graph, holds = self._graph, self._holds
        if event not in holds.payloads:
            return
        step = self._ask(policy, Situation(graph, holds.payloads.sender(event), event))
        if step.expires:
            holds.expire(event)
            self._cancel(event)
            return
        if step.to is not None and tuple(step.to) != tuple(graph.event(event).flight):
            holds.redirect(event, tuple(step.to))
        self._plan(event, step)
        if step.arrives:
            holds.hold(event)

    def _ask(self, policy: DeliveryPolicy, now: Situation) -> Step:
        """Ask a policy; a failed one changes nothing."""
        try:
            step = policy.step(now)
            _check_step(step)
            return step
        except PART_ERRORS as error:  # a policy must never be able to stop a team
            self._recorder.report_component_failure(_name(policy), f"raised {error!r}")
            return Step()

    def _plan(self, event: str, step: Step) -> None:
        """Plan the questions to the policies left over."""
        parts: tuple[Step | Later, ...] = (step, *step.also)
        for part in parts:
            if part.then is None:
                continue
            if isinstance(part, Later) and part.at is not None:
                heappush(self.recorded, (*part.at, next(self._order), event, part.then))
            else:
                # A moment later at least, so that no call goes on asking for ever.
                due = self._recorder.now + max(1, micros(part.in_s or 0))
                heappush(self.timers, (due, next(self._order), event, part.then))

    def _cancel(self, event: str) -> None:
        """Ask no policy about an event any more."""
        self.timers[:] = [plan for plan in self.timers if plan[2] != event]
        self.recorded[:] = [plan for plan in self.recorded if plan[3] != event]
        heapify(self.timers)
        heapify(self.recorded)

    def _drop_settled(self) -> None:
        """Drop the next questions about used-up events."""
        payloads = self._holds.payloads
        while self.recorded and self.recorded[0][3] not in payloads:
            heappop(self.recorded)
        while self.timers and self.timers[0][2] not in payloads:
            heappop(self.timers)


def _name(policy: DeliveryPolicy) -> str:
    return f"delivery policy {type(policy).__name__}"


def _check_step(step: object) -> None:
    """Check what a delivery policy returned.

    Raises:
        TypeError: The object is no step, or names no agents, or a time or a policy is none.
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
