"""An agent is called, by another one or from outside, and its result is awaited.

The call is an event to the callee, what it returns an event back (a final one, to the outside);
docs/wrapping.md has the rules, and what an exception or a cancellation leaves behind.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from functools import partial
from inspect import iscoroutine
from typing import Any

from dig.graph.records import TOOL_CALL

from .context import enclosing, inside
from .payload import Pieces, as_payload
from .session import Session
from .trampoline import flat
from .turn import Turn

StartAgent = Callable[[str, tuple[str, ...]], Any]
"""Starts an agent, by its name, with the notes that stand beside what it is called with."""

RunAgent = Callable[[str, tuple[str, ...]], Awaitable[Any]]
"""Runs an agent, by its name, with the notes that stand beside what it is called with.

It is the agent that was called, unless healing has sent the call to another.
"""


class Call:
    """One call, from before the callee runs until its result is handed over."""

    def __init__(
        self, session: Session, agent: str, payload: Any, *,
        tell: Callable[[Any], Any] = as_payload, bounces: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        """Report the call to the monitor, which releases it at once unless a gate keeps it.

        Args:
            session: The session of the team.
            agent: The agent that is called.
            payload: The arguments of the call, as plain JSON.
            tell: Makes plain JSON of what it returns.
            bounces: Whether an answer to the outside can come back at this moment.
        """
        self._tell = tell
        self._bounces = bounces
        self._session = session
        self._agent = agent
        self._payload = payload
        self._caller = current_turn(session)
        self._depth = self._caller.depth + 1 if self._caller else 0
        self._turn: Turn | None = None
        self._answer = ""
        self.event, self._instance = session.guard.run(self._place, default=("", agent))

    async def run(self, agent: RunAgent) -> Any:
        """Run the agent, and hand over what it returns or raises."""
        return await flat(self._run(agent), self._depth)

    async def _run(self, agent: RunAgent, turn: Turn | None = None) -> Any:
        relief = self._session.relief
        try:
            turn = turn or await self._released()
            while True:
                with inside(turn):
                    if relief.is_used:
                        work = partial(agent, self._agent, turn.notes)
                        result, other = await relief.run(self._agent, (self.event,), work)
                    else:
                        result, other = await agent(self._agent, turn.notes), ""
                    if not (other or await self._was_bounced(turn, self._told(result))):
                        return result
                if other:
                    turn.relieve()
                    self._agent = self._instance = other
                    turn = await self._released()
        except BaseException as error:
            self._has_failed(error)
            raise

    def run_now(self, agent: StartAgent) -> Any:
        """Run an agent that is not async, in the calling thread, and hand over what it returns.

        If that is a coroutine, the agent goes on until it has ended.
        """
        try:
            self._session.block_until_released(self.event)
            turn = self._begin()
            while True:
                with inside(turn):
                    result = agent(self._agent, turn.notes)
                if iscoroutine(result):
                    return self._run(_begun(result, agent), turn)
                self._answer_with(turn, self._told(result))
                self._session.block_until_released(self._answer)
                if not self._has_come_back(turn):
                    return result
        except BaseException as error:
            self._has_failed(error)
            raise

    def take_back(self, error: BaseException) -> None:
        """The caller waits no more, and the agent was told so: its turn ends before the caller's.

        What the agent still says goes nowhere.

        Args:
            error: Why, as the caller is told.
        """
        self._has_failed(error)
        self._caller = None

    async def _was_bounced(self, turn: Turn, payload: Any) -> bool:
        """Hand over what an agent has said; says whether it has come back."""
        is_back = self._session.guard.run(self._answer_at_once, turn, payload, default=None)
        if is_back is None:
            await self._session.wait_until_released(self._answer)
            is_back = self._has_come_back(turn)
        return is_back

    def _told(self, result: Any) -> Any:
        return self._session.guard.call(self._tell, result, default=None)

    def _answer_with(self, turn: Turn, payload: Any) -> None:
        """The agent has said something, which is held for as long as a gate keeps it."""
        if self._caller is None:
            self._answer = turn.submit(payload, bounces=self._bounces())
        else:
            self._answer = turn.reply(payload, self._caller.address)

    def _answer_at_once(self, turn: Turn, payload: Any) -> bool | None:
        """The same, and hand it over unless it is held; says whether it has come back then."""
        self._answer_with(turn, payload)
        is_held = self._session.holds.is_held(self._answer)
        return None if is_held else self._has_come_back(turn)

    def _has_come_back(self, turn: Turn) -> bool:
        """Hand over the answer, which is not held any more, unless it has come back."""
        if self._caller is None:
            return turn.was_bounced(self._answer)
        self._caller.receive(self._answer)
        return False

    def _place(self) -> tuple[str, str]:
        """Make the event of the call: a problem, a message, or one that is passed on."""
        session, caller = self._session, self._caller
        instance = session.instances.reserve(self._agent)
        if caller is None:
            return session.request(self._payload, instance), instance
        return caller.call(self._payload, instance), instance

    async def _released(self) -> Turn:
        """Begin when the event of the call is not held any more."""
        turn = self._session.guard.run(self._begun_at_once, default=None)
        if turn is None:
            await self._session.wait_until_released(self.event)
            turn = self._begin()
        return turn

    def _begun_at_once(self) -> Turn | None:
        return None if self._session.holds.is_held(self.event) else self._begun()

    def _begin(self) -> Turn:
        begun = self._session.guard.run(self._begun, default=None)
        return begun or Turn(self._session.guard, self._session.holds, "", ())

    def _begun(self) -> Turn:
        elsewhere = self._session.recipients_of(self.event)
        if elsewhere and self._instance not in elsewhere:
            self._session.release_instance(self._instance)
            self._agent = self._instance = elsewhere[0]
        turn = self._turn = self._session.begin(self._instance, (self.event,))
        # What came from outside is not passed on, but sent to others in the agent's own name.
        turn.depth = self._depth
        turn.received = (self.event if self._caller else "", self._payload)
        return turn

    def _has_failed(self, error: BaseException) -> None:
        self._session.guard.run(self._fail, error, default=None)

    def _fail(self, error: BaseException) -> None:
        """The agent has raised, or its caller was cancelled: nothing may stay open."""
        caller, session = self._caller, self._session
        session.release(self._answer or self.event)
        if caller is None:
            (self._turn or self._begin()).abandon(error, answer=self._answer)
            return
        caller.call_failed(self.event)
        if self._turn is None and caller.is_open:  # the agent never ran
            session.withdraw(self._instance, (self.event,), caller.instance)
            caller.receive(self.event)
            return
        turn = self._turn or self._begin()
        caller.receive(turn.abandon(error, caller.address, answer=self._answer))


def _begun(work: Awaitable[Any], agent: StartAgent) -> RunAgent:
    """Run an agent that has begun its first work already."""
    first = [work]
    return lambda *who: first.pop() if first else agent(*who)


class StreamedCall(Call):
    """A call of an agent that yields. It is iterated in place of what the agent makes.

    The items pass through as they come; the answer, at the end, is all that was yielded. So it
    cannot come back.
    """

    def __init__(self, session: Session, agent: str, payload: Any, start: StartAgent) -> None:
        """Report the call to the monitor.

        Args:
            session: The session of the team.
            agent: The agent that is called.
            payload: The arguments of the call, as plain JSON.
            start: Makes its async generator.
        """
        super().__init__(session, agent, payload, bounces=lambda: False)
        self._start = start
        self._items: AsyncGenerator[Any, Any] | None = None
        self._said = Pieces()

    async def asend(self, given: Any) -> Any:
        """The next item; before the first one, the agent begins."""
        if self._items is None:
            try:
                turn = await self._released()
                with inside(turn):
                    self._items = self._start(self._agent, turn.notes)
            except BaseException as error:
                self._has_failed(error)
                raise
        return await self._next(self._items.asend(given))

    async def athrow(self, error: BaseException) -> Any:
        """The next item, after something is raised where the agent has yielded the last one."""
        assert self._items is not None
        return await self._next(self._items.athrow(error))

    async def aclose(self) -> None:
        """No more items are wanted; twice does no harm."""
        turn = self._turn
        if turn is None or self._items is None:
            return
        try:
            with inside(turn):
                await self._items.aclose()
        except BaseException as error:
            self._has_failed(error)
            raise
        if turn.is_open:
            self._answer_with(turn, self._said.payload())
            self._session.release(self._answer)
            self._has_come_back(turn)

    async def _next(self, step: Awaitable[Any]) -> Any:
        assert self._turn is not None
        try:
            with inside(self._turn):
                item = await step
        except StopAsyncIteration:
            await self._was_bounced(self._turn, self._said.payload())
            raise
        except BaseException as error:
            self._has_failed(error)
            raise
        self._said.add(self._told(item))
        return item


TOOL = "tool:"
"""Tools are agents whose names begin so, where a user wants to see them (`tools=True`)."""


class ToolCalls:
    """The tools that agents call, each as a call of the agent `tool:NAME`; used inside steps.

    A tool that a framework tells nothing more of is given up with the turn that has called it.
    """

    def __init__(self, session: Session) -> None:
        """Begin with none."""
        self._session = session
        self._open: dict[Hashable, tuple[Turn, str, str]] = {}  # key -> who asks, instance, event
        self._turns: dict[Hashable, Turn] = {}  # key -> the tool at work

    def call(self, key: Hashable, asker: Turn, name: str, arguments: Any) -> str:
        """An agent calls a tool, which begins unless a gate keeps the call.

        Args:
            key: By what the framework knows the call.
            asker: The turn of the agent.
            name: The tool.
            arguments: The arguments of the tool.

        Returns:
            The event; await `Session.wait_until_released`, then `begin`.
        """
        instance = self._session.reserve_instance(f"{TOOL}{name}")
        event = asker.send(as_payload(arguments), instance, TOOL_CALL)
        self._open[key] = asker, instance, event
        if not self._session.is_held(event):
            self.begin(key)
        return event

    def begin(self, key: Hashable) -> None:
        """The tool begins, whether the call is held or not; twice does no harm."""
        if key in self._open and key not in self._turns:
            _, instance, event = self._open[key]
            self._turns[key] = self._session.begin(instance, (event,), at_once=True)

    def complete(self, key: Hashable, result: Any) -> None:
        """A tool has returned; its agent goes on when all that it awaits is there."""
        self._end(key, lambda tool, to: tool.end(as_payload(result), to, "tool_result"))

    def fail(self, key: Hashable, error: BaseException) -> None:
        """A tool has raised; its agent gets a notice."""
        self._end(key, lambda tool, to: tool.fail(error, to))

    def give_up(self, error: BaseException, asker: Turn | None = None) -> None:
        """Open calls of one turn, or of all turns, fail."""
        for key in [key for key, one in self._open.items() if asker in (None, one[0])]:
            self.fail(key, error)

    def _end(self, key: Hashable, end: Callable[[Turn, tuple[str, ...]], str]) -> None:
        if key in self._open:
            self.begin(key)
            asker, tool = self._open.pop(key)[0], self._turns.pop(key)
            asker.receive(end(tool, asker.address), at_once=True)


def current_turn(session: Session) -> Turn | None:
    """The turn of a session that the running code belongs to, if it goes on."""
    mine = (turn for turn in enclosing() if turn.guard is session.guard and turn.is_open)
    return next(mine, None)
