"""Relief: another agent is asked in place of an agent without an answer.

Healing gives the events of an agent to another one (`reassign`), or a problem (`restart`). A call
has one answer. So the callee is cancelled, and the wrapper runs the substitute in its place; later
words of the callee are not passed on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any

import anyio

from dig.detectors.interventions import Reroute

from .agent_instances import AgentInstances
from .call_errors import CalledOffError
from .capabilities import RELIEVING
from .guard import Guard
from .held_events import LoopCaller, Waker

RELIEVED = CalledOffError("another agent was asked in its place")
"""The recorded error of turns that were given to another agent; never raised."""


class AgentAtWork:
    """A running agent, until the return or a cancellation for a substitute.

    Attributes:
        agent: The agent's name.
        events: The events that the agent was called with.
        scope: The cancel scope around the agent.
        loop: The loop in which the agent runs.
        substitute: The agent that is asked instead; empty: none is.
    """

    def __init__(self, agent: str, events: Collection[str]) -> None:
        """Begin on the current loop."""
        self.agent = agent
        self.events = frozenset(events)
        self.scope = anyio.CancelScope()
        self.loop = LoopCaller()
        self.loop.bind_to_current_loop()
        self.substitute = ""


class Relief:
    """The agents at work, open for relief by another agent.

    Attributes:
        is_used: Whether the team allows relief.
    """

    def __init__(
        self, guard: Guard, capabilities: Collection[str], instances: AgentInstances
    ) -> None:
        self.is_used = not RELIEVING.isdisjoint(capabilities)
        self._guard = guard
        self._instances = instances
        self._at_work: dict[AgentAtWork, None] = {}  # in order of their calls

    async def run(
        self, agent: str, events: Collection[str], work: Callable[[], Awaitable[Any]]
    ) -> tuple[Any, str]:
        """Run an agent until the return, or until a substitute is asked.

        Args:
            agent: The agent's name.
            events: The events that the agent was called with.
            work: Runs the agent.

        Returns:
            The return value of the agent, and the substitute: empty, if there is none. An instance
            is reserved for the substitute.
        """
        worker, result, failure = AgentAtWork(agent, events), None, None
        self._guard.run(self._at_work.setdefault, worker, default=None)
        try:
            with worker.scope:
                result = await work()
        except Exception as error:
            failure = error  # a relieved agent may raise whatever it likes about its cancellation
        except BaseException:
            self._guard.run(self._give_up, worker, default=None)
            raise
        self._guard.run(self._at_work.pop, worker, None, default=None)
        if failure is not None and not worker.substitute:
            raise failure
        return result, worker.substitute

    # --- inside a step ---

    def find(self, event: str) -> AgentAtWork | None:
        """The last agent called with an event, if still at work."""
        workers = reversed(self._at_work)
        return next((worker for worker in workers if event in worker.events), None)

    def why_not(self, wish: Reroute) -> str | None:
        """Return why no other agent can be asked about an event; ``None``: possible."""
        if len(wish.to) != 1:
            return "a call goes to one agent"
        worker = self.find(wish.event)
        if worker is None:
            return "no agent that was called with it can be cancelled"
        if worker.substitute not in ("", wish.to[0]):
            return f"{worker.substitute} is asked already"
        return None

    def ask(self, event: str, to: str) -> list[Waker]:
        """Reassign an event to a substitute; returns callbacks to cancel the agent at work."""
        worker = self.find(event)
        if worker is None or worker.substitute:
            return []
        worker.substitute = self._instances.reserve(to)
        return [partial(worker.loop.call, worker.scope.cancel)]

    def counts(self, event: str) -> bool:
        """Whether the words of the agent with an event count: no substitute was asked."""
        worker = self.find(event)
        return worker is None or not worker.substitute

    def answers(self, event: str) -> bool:
        """Accept an answer to an event: from now on no substitute is asked.

        Returns:
            Whether the answer counts.
        """
        counts, worker = self.counts(event), self.find(event)
        if counts and worker is not None:
            self._at_work.pop(worker, None)
        return counts

    def _give_up(self, worker: AgentAtWork) -> None:
        self._at_work.pop(worker, None)
        if worker.substitute:
            self._instances.release(worker.substitute)
