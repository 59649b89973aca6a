"""The instances of agents: overlapping turns of an agent are made by `NAME`, `NAME#2`, ..."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush

from .guard import Guard


class AgentInstances:
    """The reserved and working instances; used inside steps.

    The first turn of an agent is made by the instance with the agent's own name; while that is
    taken, further turns are made by `NAME#2`, `NAME#3` and so on, which join and leave.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._begun: dict[str, bool] = {}  # reserved instance -> whether its turn has begun
        self._assigned: set[str] = set()  # to a request, for further turns
        self._agents: dict[str, tuple[str, int]] = {}  # further instance -> its agent, its number
        self._free: dict[str, list[int]] = {}  # agent -> a heap of the numbers to be given next

    def reserve(self, agent: str) -> str:
        """Reserve an instance for the next turn of an agent."""
        instance = agent if agent not in self._begun else self._further(agent)
        self._begun[instance] = False
        if instance not in self._guard.monitor.graph.agents:
            self._guard.ask(self._guard.monitor.join, instance)
        return instance

    def take(self, instance: str) -> str:
        """Begin a turn on a reserved instance, or on a further instance of the agent."""
        if self._begun.get(instance, True):
            instance = self.reserve(instance)
        self._begun[instance] = True
        return instance

    def is_awaited(self, instance: str) -> bool:
        """Whether an instance is reserved for a future turn."""
        return self._begun.get(instance) is False

    def agent_of(self, instance: str) -> str:
        """The agent of an instance."""
        return self._agents[instance][0] if instance in self._agents else instance

    def is_free(self, agent: str, besides: Collection[str] = ()) -> bool:
        """Whether an agent is present, and has no turn, no reservation and no work to do.

        Args:
            agent: The agent.
            besides: Events that the agent may have.
        """
        state = self._guard.monitor.graph.agents.get(agent)
        if state is None or agent in self._begun:
            return False
        held = (*state.buffer.values(), *state.incoming.values())
        return not any(event.work and event.id not in besides for event in held)

    def keep(self, instance: str) -> None:
        """Keep an instance beyond the end of a turn, until `release`.

        An agent remembers what its instance has seen, so an instance that comes back to a request
        must not have worked for another one meanwhile.
        """
        self._assigned.add(instance)

    def end_turn(self, instance: str) -> None:
        """Give back the instance of an ended turn, except a kept instance."""
        if instance in self._assigned:
            self._begun[instance] = False
        else:
            self.release(instance)

    def release(self, instance: str) -> None:
        """Give back the instance of a cancelled turn, or a kept instance."""
        self._assigned.discard(instance)
        if self._begun.pop(instance, None) is None or instance not in self._agents:
            return
        agent, number = self._agents.pop(instance)
        heappush(self._free[agent], number)
        monitor = self._guard.monitor
        if instance in monitor.graph.agents:
            self._guard.ask(monitor.leave, instance)

    def let_go(self, instance: str) -> None:
        """Give back a kept instance, at the end of a running turn."""
        self._assigned.discard(instance)
        if self.is_awaited(instance):
            self.release(instance)

    def empty(self, instance: str) -> None:
        """Give back the instance of a cancelled turn, with all events in front of the instance.

        An agent's own name leaves and joins again: else the events would wait there for ever.
        """
        is_first = instance in self._begun and instance not in self._agents
        self.release(instance)
        monitor = self._guard.monitor
        if is_first and instance in monitor.graph.agents:
            self._guard.ask(monitor.leave, instance)
            self._guard.ask(monitor.join, instance)

    def _further(self, agent: str) -> str:
        free = self._free.setdefault(agent, [2])
        while True:
            number = heappop(free)
            if not free:
                heappush(free, number + 1)
            instance = f"{agent}#{number}"
            if instance not in self._guard.monitor.graph.agents:  # else an agent is called so
                self._agents[instance] = (agent, number)
                return instance


class Seats:
    """The instances of agents for a whole request; used inside steps."""

    def __init__(self, instances: AgentInstances) -> None:
        """Begin without a seat."""
        self._instances = instances
        self._seats: dict[str, str] = {}  # agent -> its instance

    def __bool__(self) -> bool:
        return bool(self._seats)

    def keep(self, instance: str) -> None:
        """Keep an instance as the seat of its agent."""
        self._instances.keep(instance)
        self._seats[self._instances.agent_of(instance)] = instance

    def take(self, agent: str) -> str:
        """The seat of an agent, or a reserved instance."""
        return self._seats.get(agent) or self._instances.reserve(agent)

    def forget(self, instance: str) -> None:
        """Forget a seat given back otherwise."""
        self._seats.pop(self._instances.agent_of(instance), None)

    def leave(self) -> None:
        """Give back all seats, of agents at work at the end of their turns."""
        for instance in self._seats.values():
            self._instances.let_go(instance)
        self._seats.clear()
