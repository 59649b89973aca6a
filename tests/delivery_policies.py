"""Delivery policies as users may write them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dig.monitor.messages import DeliveryPolicy, Later, Situation, Step


@dataclass(frozen=True)
class Broadcast:
    """To all present agents, except the sender."""

    def step(self, now: Situation) -> Step:
        return Step(tuple(agent for agent in now.graph.agents if agent != now.sender))


@dataclass(frozen=True)
class LeastLoaded:
    """To the agents with the fewest events, in the buffer or on the way; by default all may be."""

    count: int = 1
    among: tuple[str, ...] = ()

    def step(self, now: Situation) -> Step:
        agents = now.graph.agents
        names = [a for a in agents if (a in self.among if self.among else a != now.sender)]
        names.sort(key=lambda name: len(agents[name].buffer) + len(agents[name].incoming))
        return Step(tuple(names[: self.count]))


@dataclass(frozen=True)
class Escalating:
    """As one policy; and as a second one too, if no agent consumed the event in time."""

    first: DeliveryPolicy
    then: DeliveryPolicy
    after_s: float

    def step(self, now: Situation) -> Step:
        first = self.first.step(now)
        return replace(first, also=(*first.also, Later(_UnlessConsumed(self.then), self.after_s)))


@dataclass(frozen=True)
class _UnlessConsumed:
    policy: DeliveryPolicy

    def step(self, now: Situation) -> Step:
        is_consumed = now.event is not None and now.graph.event(now.event).consumed
        return Step(arrives=False) if is_consumed else self.policy.step(now)
