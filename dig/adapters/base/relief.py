"""Another agent is asked in place of one that is at work and does not answer.

Healing gives what an agent holds to another one (`reassign`), or a problem (`restart`). A call has
one answer. So the agent that was called is cancelled, and the wrapper runs the other one where the
first one stood; what the first one still says is not passed on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any

import anyio

from dig.detectors.interventions import Reroute

from .capabilities import RELIEVING
from .errors import CalledOffError
from .guard import Guard
from .holds import LoopCaller, Waker
from .instances import AgentInstances

RELIEVED = CalledOffError("another agent was asked in its place")
"""The error that a trace has for turns that were given to another agent; it is never raised."""


class AgentAtWork:
    """An agent that runs, until it returns or is cancelled because another one is asked.

    Attributes:
        agent: Its name.
        events: The events that the agent was called with.
        scope: Cancels it.
        loop: The loop in which the agent runs.
        stand_in: The agent that is asked in its place; empty: none is.
    """

    def __init__(self, agent: str, events: Collection[str]) -> None:
        """Begin on the current loop."""
        self.agent = agent
        self.events = frozenset(events)
        self.scope = anyio.CancelScope()
        self.loop = LoopCaller()
        self.loop.bind_to_current_loop()
        self.stand_in = ""


class Relief:
    """The agents that are at work, and in whose place another one may be asked.

    Attributes:
        is_used: Whether the team allows that.
    """

    def __init__(
        self, guard: Guard, capabilities: Collection[str], instances: AgentInstances
    ) -> None:
        """Begin with none.

        Args:
            guard: Makes the steps of the session.
            capabilities: The capabilities of the team.
            instances: The instances of its agents.
        """
        self.is_used = not RELIEVING.isdisjoint(capabilities)
        self._guard = guard
        self._instances = instances
        self._at_work: list[AgentAtWork] = []

    async def run(
        self, agent: str, events: Collection[str], work: Callable[[], Awaitable[Any]]
    ) -> tuple[Any, str]:
        """Run an agent until it returns, or until another one is asked in its place.

        Args:
            agent: Its name.
            events: The events that the agent was called with.
            work: Runs it.

        Returns:
            What it has returned, and the agent that is asked in its place: empty, if none is. A
            turn is reserved for that.
        """
        one, result, failure = AgentAtWork(agent, events), None, None
        self._guard.run(self._at_work.append, one, default=None)
        try:
            with one.scope:
                result = await work()
        except Exception as error:
            failure = error
        except BaseException:
            self._guard.run(self._give_up, one, default=None)
            raise
        self._guard.run(self._forget, one, default=None)
        if failure is not None and not one.stand_in:
            raise failure
        return result, one.stand_in

    # --- inside a step ---

    def find(self, event: str) -> AgentAtWork | None:
        """The agent that was called with an event last, and has not returned."""
        return next((one for one in reversed(self._at_work) if event in one.events), None)

    def why_not(self, wish: Reroute) -> str | None:
        """Why no other agent can be asked about an event; ``None``: one can."""
        if len(wish.to) != 1:
            return "a call goes to one agent"
        one = self.find(wish.event)
        if one is None:
            return "no agent that was called with it can be cancelled"
        if one.stand_in not in ("", wish.to[0]):
            return f"{one.stand_in} is asked already"
        return None

    def ask(self, event: str, to: str) -> list[Waker]:
        """Healing has given an event to another agent: returns what cancels the one that has it."""
        one = self.find(event)
        if one is None or one.stand_in:
            return []
        one.stand_in = self._instances.reserve(to)
        return [partial(one.loop.call, one.scope.cancel)]

    def counts(self, event: str) -> bool:
        """Whether the words of the agent that has an event count: no other one was asked."""
        one = self.find(event)
        return one is None or not one.stand_in

    def answers(self, event: str) -> bool:
        """The agent that has an event answers: from now on no other one is asked.

        Returns:
            Whether the answer counts.
        """
        counts, one = self.counts(event), self.find(event)
        if counts and one is not None:
            self._forget(one)
        return counts

    def _forget(self, one: AgentAtWork) -> None:
        self._at_work = [other for other in self._at_work if other is not one]

    def _give_up(self, one: AgentAtWork) -> None:
        self._forget(one)
        if one.stand_in:
            self._instances.release(one.stand_in)
