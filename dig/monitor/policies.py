"""Delivery policies: the recipients of an event, and the time of delivery (paper, eq. 3).

A policy is a small frozen object with one method; what is left over of it after a step is
another policy. A trace names a policy by its class, or by its attribute `recorded_as`, if it has
one.
"""

from __future__ import annotations

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
class Delayed:
    """As another policy, but `after_s` seconds later; until then the event is on its way."""

    policy: DeliveryPolicy
    after_s: float

    def __post_init__(self) -> None:
        """Refuse a delay of nothing."""
        _check_delay(self.after_s)

    def step(self, now: Situation) -> Step:
        """Let the event be on its way, and ask the other policy in time."""
        to = self.policy.step(now).to
        return Step(to, arrives=False, then=self.policy, in_s=self.after_s)


@dataclass(frozen=True)
class Expiring:
    """As another policy; copies that have not arrived after `after_s` seconds are called back."""

    policy: DeliveryPolicy
    after_s: float

    def __post_init__(self) -> None:
        """Refuse a delay of nothing."""
        _check_delay(self.after_s)

    def step(self, now: Situation) -> Step:
        """Begin with the policy."""
        first = self.policy.step(now)
        return replace(first, also=(*first.also, Later(_Recall(), self.after_s)))


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


class _Recall:
    """Calls an event back, unless it has arrived."""

    def step(self, now: Situation) -> Step:
        is_on_its_way = now.event is not None and bool(now.graph.event(now.event).flight)
        return Step(arrives=False, expires=is_on_its_way)


def _check_delay(seconds: float) -> None:
    if not seconds > 0:
        raise SettingsError(f"a delay must be more than 0 s, got {seconds!r:.60}")
