"""The members of a team of A2A agents, with replaced methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from copy import copy
from typing import Any, NamedTuple

from a2a.client import Client
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.types import Message, Task

from dig.adapters.base import (
    CalledOffError,
    Patches,
    Session,
    enclosing,
    inside,
    is_stop,
    members_by_name,
    need_attributes,
    need_one_name,
)
from dig.errors import BudgetStop, SettingsError

from .calls import BUDGET, TaskCall, calls, read
from .words import ENDS, LINK, annotated, new_link, payload_of

FORGOTTEN = CalledOffError("too many tasks wait for an answer, and this one waits longest")
"""The reason in a trace for a task that is not waited for any more."""

MOST_WAITING = 1_000
"""The number of tasks of a team that are known to wait for somebody's answer."""

CANCELED = CalledOffError("the task was canceled")
"""The reason in a trace for a task that waited for an answer and was canceled."""


class Member(NamedTuple):
    """A member of a team.

    Attributes:
        name: Its name in the trace.
        agent: The client or the executor.
        is_served: Whether it is an executor.
    """

    name: str
    agent: Any
    is_served: bool


def is_member(agent: Any) -> bool:
    """Whether an object is a client, an executor, or a request handler with an executor."""
    return isinstance(getattr(agent, "agent_executor", agent), Client | AgentExecutor)


def members_of(team: Any) -> list[Member]:
    """A team's members.

    Raises:
        SettingsError: A member is neither a client nor an executor, or the SDK is put together in
            another way.
    """
    need_attributes("A2A SDK", (Client,), ("send_message", "cancel_task"))
    need_attributes("A2A SDK", (AgentExecutor,), ("execute", "cancel"))
    need_attributes("A2A SDK", (RequestContext,), ("message", "metadata", "task_id"))
    members = []
    for name, member in members_by_name(team, lambda member: ""):
        agent = getattr(member, "agent_executor", member)
        if not is_member(member):
            raise SettingsError(
                f"{type(member).__name__} is no A2A client, executor or request handler of one"
            )
        card = getattr(member, "_agent_card", None) or getattr(member, "_card", None)
        name = name or getattr(card, "name", "") or type(agent).__name__
        members.append(Member(name, agent, isinstance(agent, AgentExecutor)))
    for is_served in (False, True):  # an agent may have a client and an executor
        need_one_name(member.name for member in members if member.is_served == is_served)
    return members


class WatchedMembers:
    """A wrapped team.

    Attributes:
        restore: Gives the clients and executors their own methods back.
    """

    def __init__(self, session: Session, members: Iterable[Member]) -> None:
        """Have the messages of clients and executors monitored from now on."""
        self._session = session
        self._waiting: dict[str | None, TaskCall] = {}  # by task; the longest waiting first
        patches = Patches()
        self.restore = patches.restore
        for name, agent, is_served in members:
            if is_served:
                patches.patch(agent, "execute", self._execute, name)
                patches.patch(agent, "cancel", self._cancel, "task_id")
            else:
                patches.patch(agent, "send_message", self._send, name)
                patches.patch(agent, "cancel_task", self._cancel, "id")

    async def _send(
        self, original: Callable[..., Any], name: str, request: Any, **options: Any
    ) -> AsyncIterator[Any]:
        """Report a message of a client, from the call to the answer."""
        # Of a call by an agent of another wrapped team, that team's session is told.
        turn = next((turn for turn in enclosing() if turn.is_open), None)
        session: Session = self._session if turn is None else turn.guard.session
        payload, link = session.guard.call(payload_of, request.message, default=None), new_link()
        call = self._waiting.pop(request.message.task_id, None)
        if call is None:
            call = TaskCall(session, name, payload, may_bounce=False, traceparent=link)
            try:
                with call:
                    await call.begin()
            except BudgetStop as error:
                raise call.stop() or error from None
        else:
            call.is_served = False
            call.resume(payload)
        linked = annotated(request, call.turn.notes if session.mode == "heal" else ())
        linked.metadata[LINK] = link
        calls[link] = call
        try:
            async with aclosing(read(call, original(linked, **options))) as items:
                async for item in items:
                    yield item
        finally:
            del calls[link]
            self._note_waiting(call)

    async def _execute(
        self, original: Callable[..., Awaitable[None]], name: str, context: Any, queue: Any
    ) -> None:
        """Serve a message to an executor; no server knows what a limit raises inside."""
        try:
            await self._serve(original, name, context, queue)
        except BaseException as error:
            if is_stop(error):
                raise RuntimeError(BUDGET) from error
            raise

    async def _serve(
        self, original: Callable[..., Awaitable[None]], name: str, context: Any, queue: Any
    ) -> None:
        """Report a message to an executor, from the call to the answer."""
        link = context.metadata.get(LINK)
        payload = self._session.guard.call(payload_of, context.message, default=None)
        call = calls.get(str(link))
        if call is not None and call.guard in self._session.guards and not call.is_served:
            call.is_served = True  # the event of the client's call is there already
        elif (call := self._waiting.pop(context.task_id, None)) is not None:
            call.resume(payload)
        else:
            link = link if isinstance(link, str) else None
            with (call := TaskCall(self._session, name, payload, traceparent=link)):
                await call.begin()
        with call:
            outlet = WatchedQueue(queue, call)
            while outlet.is_back:
                outlet.is_back = False
                with inside(call.turn):
                    try:
                        await original(self._annotated(context, call), outlet)
                    except BaseException as error:
                        if not call.hands_back(error):
                            raise
                        outlet.call_again()
                if not (outlet.is_back or call.is_asking):
                    outlet.is_back = await call.hand_over(call.reading.payload)
        self._note_waiting(call)

    def _annotated(self, context: Any, call: TaskCall) -> Any:
        """The context of an executor, with the notes for the turn."""
        if not (notes := call.turn.notes) or context._params is None:
            return context
        twin = copy(context)  # the message of the request itself goes into the task's history
        twin._params = annotated(context._params, notes)
        return twin

    async def _cancel(
        self, original: Callable[..., Awaitable[Any]], key: str, context: Any, *args: Any
    ) -> Any:
        """Report the cancellation of a waiting task."""
        result = await original(context, *args)
        if (call := self._waiting.pop(getattr(context, key), None)) is not None:
            call.fail(CANCELED)
        return result

    def _note_waiting(self, call: TaskCall) -> None:
        """Remember a call with a waiting agent."""
        if call.is_asking:
            self._waiting[call.reading.task] = call
        if len(self._waiting) > MOST_WAITING:
            self._waiting.pop(next(iter(self._waiting))).fail(FORGOTTEN)


class WatchedQueue(EventQueue):  # type: ignore[misc]
    """The queue of an executor; holds an answer until the release.

    Attributes:
        is_back: Whether the executor has to be called: at first, and if its answer came back.
    """

    def __init__(self, queue: EventQueue, call: Any) -> None:
        """Begin before the executor's first call."""
        self._queue, self._call = queue, call
        self.is_back, self._is_again = True, False

    async def enqueue_event(self, event: Any) -> None:
        """Report an event, and pass on all but an answer sent back."""
        call, is_begun = self._call, isinstance(event, Task) and event.status.state not in ENDS
        if self.is_back or (self._is_again and is_begun):
            return  # as early as the answer that came back, or a task that is there already
        call.may_bounce = isinstance(event, Message) or not call.reading.has_artifacts
        if await call.take(event):
            self.call_again()
        else:
            await self._queue.enqueue_event(event)

    def call_again(self) -> None:
        """Have the executor called once more, about the same task."""
        self.is_back = self._is_again = True

    def __getattr__(self, name: str) -> Any:
        """Delegate whatever else an executor asks of the queue."""
        return getattr(self._queue, name)
