"""Seats: an agent works on one turn at a time; overlapping turns make instances of it."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .session import Session


class Seats:
    """Who sits where; used inside steps of the session."""

    def __init__(self, session: Session) -> None:
        """Begin with every agent free."""
        self._session = session
        self._taken: dict[str, bool] = {}  # seat -> whether a turn was begun on it
        self._instances: dict[str, tuple[str, int]] = {}  # instance -> its agent, its number
        self._free: dict[str, list[int]] = {}  # agent -> a heap of the numbers to be given next

    def reserve(self, agent: str) -> str:
        """A seat for the next turn of an agent."""
        seat = agent if agent not in self._taken else self._instance(agent)
        self._taken[seat] = False
        self._come(seat)
        return seat

    def take(self, seat: str) -> str:
        """A turn begins on a seat that was reserved, or on one of the agent's."""
        if self._taken.get(seat, True):
            seat = self.reserve(seat)
        self._taken[seat] = True
        return seat

    def is_awaited(self, seat: str) -> bool:
        """Whether a seat is reserved for a turn that has not begun."""
        return self._taken.get(seat) is False

    def agent_of(self, seat: str) -> str:
        """The agent of a seat, which may be an instance."""
        return self._instances[seat][0] if seat in self._instances else seat

    def is_free(self, agent: str) -> bool:
        """Whether an agent is there, and has no turn, no reservation and no work to do."""
        state = self._session.monitor.graph.agents.get(agent)
        if state is None or agent in self._taken:
            return False
        return not any(event.work for event in (*state.buffer.values(), *state.incoming.values()))

    def release(self, seat: str) -> None:
        """A turn is over, or will not begin; an instance goes."""
        if self._taken.pop(seat, None) is None or seat not in self._instances:
            return
        agent, number = self._instances.pop(seat)
        heappush(self._free[agent], number)
        monitor = self._session.monitor
        if seat in monitor.graph.agents:
            self._session.ask(monitor.leave, seat)

    def _instance(self, agent: str) -> str:
        free = self._free.setdefault(agent, [2])
        while True:
            number = heappop(free)
            if not free:
                heappush(free, number + 1)
            seat = f"{agent}#{number}"
            if seat not in self._session.monitor.graph.agents:  # else somebody is called so
                self._instances[seat] = (agent, number)
                return seat

    def _come(self, seat: str) -> None:
        monitor = self._session.monitor
        if seat not in monitor.graph.agents:
            self._session.ask(monitor.join, seat)
