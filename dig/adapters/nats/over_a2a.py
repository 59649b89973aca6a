"""Agents of a session that talk over A2A: HTTP carries a message, the session holds it.

A client's message is a call in the session, too; both have the same trace context, which stands in
the metadata of the request. An executor begins when its agent has the call in the session, and the
caller gets the last item of the answer when the session has released it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup

from dig.adapters.a2a.team import WatchedQueue, is_member, members_of
from dig.adapters.a2a.words import AgentWords, annotated, payload_of
from dig.adapters.base import Patches
from dig.errors import CallError, DigError

from .calls import Callees, call_context, current_turn
from .contexts import problem_context

CALL = "dig.call"
"""The key of a request's metadata with the trace context of a call of the session.

It is not the key of `dig.wrap`: a wrapped caller need not be in the session.
"""

ARRIVAL_S = 30.0
"""Seconds after which the agent of a call gives up waiting for the message over A2A."""


class _Visit:
    """A message over A2A, and the turn of the session about the message.

    Attributes:
        begun: Is set with the `turn` when the session has released the call.
        arrived: Is set when the message is there.
        ended: Is set when the executor has said the last word, or raised the `error`.
        released: Is set when the executor's caller may have that word.
    """

    may_bounce = False

    def __init__(self) -> None:
        self.turn: Any = None
        self.error: BaseException | None = None
        self.reading = AgentWords()
        self.begun, self.arrived = anyio.Event(), anyio.Event()
        self.ended, self.released = anyio.Event(), anyio.Event()

    async def take(self, event: Any) -> bool:
        """Hear an event of the executor, and hold the last one."""
        self.reading.take(event)
        if self.reading.end:
            self.ended.set()
            await self.released.wait()
        return False


class AgentsOverA2A:
    """The clients and executors of a process of a session.

    Attributes:
        functions: The executors as functions, by name.
        others: The other agents, by name.
    """

    def __init__(self, agents: Mapping[str, Any]) -> None:
        """Find the clients and executors among agents by name."""
        self._members = members_of({n: agent for n, agent in agents.items() if is_member(agent)})
        self.others = {name: agent for name, agent in agents.items() if not is_member(agent)}
        names = [member.name for member in self._members if member.is_served]
        self.functions = {name: self._function() for name in names}
        self._visits: dict[str, _Visit] = {}
        self._callees = Callees()

    @contextmanager
    def attached(self, callees: Callees, tasks: TaskGroup) -> Iterator[None]:
        """Have the messages of clients and executors go through the session during the block."""
        self._callees, self._tasks, patches = callees, tasks, Patches()
        try:
            for name, agent, is_served in self._members:
                method = ("execute", self._execute) if is_served else ("send_message", self._send)
                patches.patch(agent, *method, name)
            yield
        finally:
            patches.restore()

    def _function(self) -> Callable[[Any], Awaitable[Any]]:
        async def serve(payload: Any) -> Any:
            turn = current_turn.get()
            visit = self._visits.setdefault(turn.context, _Visit())
            visit.turn = turn
            visit.begun.set()
            try:
                with anyio.move_on_after(ARRIVAL_S):
                    await visit.arrived.wait()
                if not visit.arrived.is_set():
                    raise CallError(f"no message over A2A came within {ARRIVAL_S:g} s")
                await visit.ended.wait()
            finally:
                self._visits.pop(turn.context, None)
            if visit.error is not None:
                raise CallError(f"{type(visit.error).__name__}: {visit.error}")
            if visit.reading.end in ("failed", "rejected", "canceled"):
                raise CallError(f"the task was {visit.reading.end}: {visit.reading.payload}")
            asks = visit.reading.end == "asks"
            return {"$asks": visit.reading.payload} if asks else visit.reading.payload

        return serve

    async def _send(
        self, original: Callable[..., Any], name: str, request: Any, **options: Any
    ) -> AsyncIterator[Any]:
        """Send a message of an agent's function, and hold the end of the answer."""
        turn = current_turn.get(None)
        if turn is None:  # the agent's own process poses the problem
            async with aclosing(original(request, **options)) as items:
                async for item in items:
                    yield item
            return
        context, words = call_context(turn), AgentWords()
        linked = annotated(request, ())
        linked.metadata[CALL] = context
        answered = self._callees.begin(name, payload_of(request.message), context)
        async with aclosing(original(linked, **options)) as items:
            async for item in items:
                words.take(getattr(item, item.WhichOneof("payload")))
                if words.end:
                    await answered.done.wait()
                yield item

    async def _execute(
        self, original: Callable[..., Awaitable[None]], name: str, context: Any, queue: Any
    ) -> None:
        """Call an executor when the session has released the call."""
        call = context.metadata.get(CALL)
        key = str(call or problem_context())
        visit = self._visits.setdefault(key, _Visit())
        if call is None:  # its caller is not in the session
            self._tasks.start_soon(self._pose, name, payload_of(context.message), key, visit)
        else:
            visit.released.set()  # the client holds it
        visit.arrived.set()
        outlet = WatchedQueue(queue, visit)
        outlet.is_back = False
        token = None
        try:
            await visit.begun.wait()
            token = current_turn.set(visit.turn)
            await original(context, outlet)
        except BaseException as error:
            visit.error = error
            raise
        finally:
            if token is not None:
                current_turn.reset(token)
            visit.ended.set()

    async def _pose(self, name: str, payload: Any, context: str, visit: _Visit) -> None:
        assert self._callees.outside is not None
        try:
            with suppress(DigError):  # the executor has raised it, and its caller has it
                await self._callees.outside(payload, (name,), context)
        finally:
            visit.released.set()
