"""Delivery policies: the recipients of an event, and the time of delivery (paper, eq. 3).

A policy is a small frozen object with one method; what is left over of it after a step is
another policy. Delays are in seconds (`after_s`), or in records (`after_t`); one in records is
also due when nothing else can happen. A trace names a policy by its class, or by its attribute
`recorded_as`, if it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from dig.errors import SettingsError
from dig.graph.records import DISTURBANCE

from .messages import DeliveryPolicy, Later, Situation, Step


@dataclass(frozen=True)
class ToAgents:
    """To some agents by name, at once."""

    to: tuple[str, ...]

    def step(self, now: Situation) -> Step:
        """Send to the named agents."""
        return Step(self.to)


@dataclass(frozen=True)
class Broadcast:
    """To all present agents, except the sender."""

    def step(self, now: Situation) -> Step:
        """Send to all others."""
        return Step(tuple(agent for agent in now.graph.agents if agent != now.sender))


@dataclass(frozen=True)
class LeastLoaded:
    """To the agents with the fewest events, in the buffer or on the way.

    Attributes:
        count: The number of agents.
        among: The agents that may be chosen; empty: all but the sender.
    """

    count: int = 1
    among: tuple[str, ...] = ()

    def step(self, now: Situation) -> Step:
        """Choose; agents with the same load in order of joining."""
        present = now.graph.agents
        choice = [a for a in self.among if a in present]
        if not self.among:
            choice = [a for a in present if a != now.sender]
        return Step(tuple(sorted(choice, key=now.load)[: self.count]))


class _WithDelay:
    after_s: float | None
    after_t: int | None

    def __post_init__(self) -> None:
        """Refuse a missing, double or non-positive delay.

        Raises:
            SettingsError: The delay is not given, given twice, or not positive.
        """
        if (self.after_s is None) == (self.after_t is None):
            raise SettingsError("a delay is either in seconds (after_s) or in records (after_t)")
        if not (self.after_s or self.after_t or 0) > 0:
            raise SettingsError("a delay must be more than nothing")


@dataclass(frozen=True)
class Delayed(_WithDelay):
    """As another policy, but later; until then the event is on its way."""

    policy: DeliveryPolicy
    after_s: float | None = None
    after_t: int | None = None

    def step(self, now: Situation) -> Step:
        """Let the event be on its way, and ask the other policy in time."""
        to = self.policy.step(now).to
        return Step(to, arrives=False, then=self.policy, in_s=self.after_s, in_t=self.after_t)


@dataclass(frozen=True)
class Escalating(_WithDelay):
    """As one policy; and as a second one too, if no agent consumed the event in time."""

    first: DeliveryPolicy
    then: DeliveryPolicy
    after_s: float | None = None
    after_t: int | None = None

    def step(self, now: Situation) -> Step:
        """Begin with the first policy."""
        later = Later(_Unless(_is_consumed, self.then), self.after_s, self.after_t)
        first = self.first.step(now)
        return replace(first, also=(*first.also, later))


@dataclass(frozen=True)
class Expiring(_WithDelay):
    """As another policy; copies that have not arrived in time are called back for good."""

    policy: DeliveryPolicy
    after_s: float | None = None
    after_t: int | None = None

    def step(self, now: Situation) -> Step:
        """Begin with the policy."""
        later = Later(_Unless(_has_arrived, _Expire()), self.after_s, self.after_t)
        first = self.policy.step(now)
        return replace(first, also=(*first.also, later))


@dataclass(frozen=True)
class Disturbed:
    """As another policy; but a disturbance is behind it, so the event waits for no purpose."""

    recorded_as: ClassVar[str] = DISTURBANCE
    policy: DeliveryPolicy

    def step(self, now: Situation) -> Step:
        """Ask the policy."""
        return self.policy.step(now)


Act = Literal["deliver", "redirect", "expire", "nothing"]
"""The actions of a policy."""


@dataclass(frozen=True)
class RecordedStep:
    """A single act of a policy in a recorded run.

    Attributes:
        t: The number of its record.
        us: When it was, in microseconds since the run began.
        does: The act; `nothing` keeps the run from ending before that moment.
        to: The new recipients, of a `redirect`.
    """

    t: int
    us: int
    does: Act
    to: tuple[str, ...] = ()

    def step(self, now: Situation) -> Step:
        """Repeat the act, as far as possible."""
        is_on_its_way = now.event is not None and bool(now.graph.event(now.event).flight)
        if self.does == "redirect":
            return Step(self.to)
        return Step(arrives=self.does == "deliver", expires=self.does == "expire" and is_on_its_way)


@dataclass(frozen=True)
class AsRecorded:
    """As a policy in a recorded run, without the policy's code; the recipients are the event's.

    Attributes:
        recorded_as: The name of the policy in the trace; ``None``: the trace does not name it.
        arrives: Whether the event arrived at once.
        steps: The later acts, in order.
    """

    recorded_as: str | None
    arrives: bool = True
    steps: tuple[RecordedStep, ...] = ()

    def step(self, now: Situation) -> Step:
        """Plan all acts."""
        also = tuple(Later(step, at=(step.t, step.us)) for step in self.steps)
        return Step(arrives=self.arrives, also=also)


@dataclass(frozen=True)
class _Unless:
    """As another policy says, unless something is true by then."""

    test: Callable[[Situation], bool]
    policy: DeliveryPolicy

    def step(self, now: Situation) -> Step:
        return Step(arrives=False) if self.test(now) else self.policy.step(now)


@dataclass(frozen=True)
class _Expire:
    def step(self, now: Situation) -> Step:
        return Step(arrives=False, expires=True)


def _is_consumed(now: Situation) -> bool:
    return now.is_consumed


def _has_arrived(now: Situation) -> bool:
    return now.event is not None and not now.graph.event(now.event).flight
