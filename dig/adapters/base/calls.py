"""Calls of agents, by other agents or by a request from outside, with an awaited result.

The call is an event to the callee, the return value an event back (a final event, to the outside);
docs/wrapping.md has the rules, and what an exception or a cancellation leaves behind.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable
from functools import partial
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any

from dig.errors import BudgetExceeded
from dig.graph.records import HANDOFF, TOOL, TOOL_CALL, Failure

from .agent_instances import Seats
from .call_errors import make_stop
from .context import inside
from .guard import in_step
from .patching import NOTE, AdapterState
from .payload import Pieces, as_payload
from .session import Session
from .trampoline import flat
from .turn import Turn

if TYPE_CHECKING:
    from dig.runtime.spending import Account

StartAgent = Callable[[str, tuple[str, ...]], Any]
"""Starts an agent, by its name, with the notes that stand beside the call."""

RunAgent = Callable[[str, tuple[str, ...]], Awaitable[Any]]
"""Runs an agent, by its name, with the notes that stand beside the call.

The agent is the callee, unless healing has sent the call to another agent.
"""


class Call:
    """The call of an agent, from before the callee runs until the result is handed over.

    `with self:` reports an exception of the block to the monitor; the exception goes on.

    Attributes:
        limits: The errors that end a request at a limit.
    """

    limits: tuple[type[BaseException], ...] = (BudgetExceeded,)

    def __init__(
        self, session: Session, agent: str, payload: Any, *,
        tell: Callable[[Any], Any] = as_payload, bounces: Callable[[], bool] = lambda: True,
        traceparent: str | None = None, caller: Turn | None = None,
    ) -> None:  # fmt: skip
        """Report the call to the monitor; the call is released at once unless a gate keeps it.

        Args:
            session: The session of the team.
            agent: The callee.
            payload: The arguments of the call, as plain JSON.
            tell: Converts the return value to plain JSON.
            bounces: Returns whether an answer to the outside can come back at this moment.
            traceparent: The W3C trace context of the call, if it has one.
            caller: The turn that calls, where threads lose the context; by default the turn of the
                running code.
        """
        session = session.of_call(caller)
        self.guard = session.guard
        self._traceparent = traceparent
        self._tell = tell
        self._bounces = bounces
        self._session = session
        self._agent = agent
        self._payload = payload
        self._caller = caller or session.current_turn()
        self._depth = self._caller.depth + 1 if self._caller else 0
        self._turn: Turn | None = None
        self._refused: Account | None = None  # of a request at a limit of the budget
        self._answer = ""
        # One step: no other turn may take the instance before the event is sent to it.
        self.event, self._instance = self.guard.run(self._send, default=("", agent))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._fail(error)

    async def run(self, agent: RunAgent) -> Any:
        """Run the agent, and hand over the return value or exception."""
        return await flat(self._run(agent), self._depth)

    async def _run(self, agent: RunAgent, turn: Turn | None = None) -> Any:
        relief = self._session.relief
        with self:
            turn = turn or await self._begin_when_released()
            while True:
                with inside(turn):
                    try:
                        if relief.is_used:
                            work = partial(agent, self._agent, turn.notes)
                            result, substitute = await relief.run(self._agent, (self.event,), work)
                        else:
                            result, substitute = await agent(self._agent, turn.notes), ""
                    except BaseException as error:
                        if not self._hands_back(turn, error):
                            raise
                        continue
                    if not (substitute or await self._was_bounced(turn, self._payload_of(result))):
                        return result
                if substitute:
                    turn.relieve()
                    self._agent = self._instance = substitute
                    turn = await self._begin_when_released()

    def run_now(self, agent: StartAgent) -> Any:
        """Run a synchronous agent in the calling thread, and return the result.

        If the result is a coroutine, the agent goes on until the coroutine has ended.
        """
        with self:
            self._session.block_until_released(self.event)
            turn, begun = self._begin(), list[Awaitable[Any]]()
            while True:
                try:
                    with inside(turn):
                        result = agent(self._agent, turn.notes)
                except BaseException as error:
                    if not self._hands_back(turn, error):
                        raise
                    continue
                if iscoroutine(result):
                    begun.append(result)  # a bounced answer starts the agent anew, without it
                    return self._run(lambda *args: begun.pop() if begun else agent(*args), turn)
                if not self._was_bounced_now(turn, self._payload_of(result)):
                    return result

    def take_back(self, error: BaseException) -> None:
        """End the agent's turn before the caller's, since the caller has stopped waiting.

        The later words of the agent go nowhere.

        Args:
            error: The error that the caller is given instead of an answer.
        """
        self._fail(error)
        self._caller = None

    def stopped_by(self, error: BaseException) -> Account | None:
        """Have a stopped request hand back now; returns the account, or ``None``."""
        account = self._session.stopped_by(error, self.event)
        if account is not None:
            self._session.hand_back(account)
        return account

    def _hands_back(self, turn: Turn, error: BaseException, *, again: bool = True) -> bool:
        """Whether an agent asked from outside has the last turn now, after an error at a limit.

        Raises:
            BudgetExceeded: It has had its last turn, or cannot begin `again`.
        """
        session = self._session
        account = session.stopped_by(error, self.event) if self._caller is None else None
        if account is None or (again and session.hand_back(account, turn)):
            return account is not None
        raise account.exceeded() from error

    async def _was_bounced(self, turn: Turn, payload: Any) -> bool:
        """Hand over an answer; returns whether the answer has come back."""
        is_back = self.guard.run(self._answer_unless_held, turn, payload, default=None)
        if is_back is None:
            await self._session.wait_until_released(self._answer)
            is_back = self._deliver_answer(turn)
        return is_back

    def _was_bounced_now(self, turn: Turn, payload: Any) -> bool:
        """Hand over an answer; the calling thread waits for a gate."""
        self._send_answer(turn, payload)
        self._session.block_until_released(self._answer)
        return self._deliver_answer(turn)

    def _payload_of(self, result: Any) -> Any:
        return self.guard.call(self._tell, result, default=None)

    def _send_answer(self, turn: Turn, payload: Any) -> None:
        if self._caller is None:
            self._answer = turn.submit(payload, bounces=self._bounces())
        else:
            self._answer = turn.reply(payload, self._caller.address)

    def _answer_unless_held(self, turn: Turn, payload: Any) -> bool | None:
        """Send an answer; ``None``: held by a gate, else whether the answer has come back."""
        self._send_answer(turn, payload)
        is_held = self._session.holds.is_held(self._answer)
        return None if is_held else self._deliver_answer(turn)

    def _deliver_answer(self, turn: Turn) -> bool:
        """Hand over the released answer; returns whether the answer has come back."""
        if self._caller is None:
            return turn.was_bounced(self._answer)
        self._caller.receive(self._answer)
        return False

    def _send(self) -> tuple[str, str]:
        """Generate the event of the call, or pass on an event of the caller."""
        instance = self._session.instances.reserve(self._agent)
        send = self._session.request if self._caller is None else self._caller.call
        return send(self._payload, instance, traceparent=self._traceparent), instance

    async def _begin_when_released(self) -> Turn:
        turn = self.guard.run(self._begin_if_allowed, default=None)
        if turn is None:
            if self._refused is None:
                await self._session.wait_until_released(self.event)
            turn = self._begin()
        return turn

    def _begin_if_allowed(self) -> Turn | None:
        """Begin the turn unless the event is held, or the request is at a limit of the budget."""
        session = self._session
        if session.holds.is_held(self.event):
            return None
        self._refused = None if session.budget is None else session.budget.refuse((self.event,))
        return self._begin_turn() if self._refused is None else None

    def _begin(self) -> Turn:
        """Begin the turn of a released event."""
        turn = self.guard.run(self._begin_if_allowed, default=None)
        if self._refused is not None:
            # A request that has no turn at all has no agent to hand anything back.
            raise self._refused.exceeded() if self._caller is None else make_stop()
        return turn or Turn(self.guard, self._session.holds, "", ())

    def _begin_turn(self) -> Turn:
        event = self._session.monitor.graph.find(self.event)
        if event is not None and event.copies and self._instance not in event.copies:
            self._session.release_instance(self._instance)
            self._agent = self._instance = next(iter(event.copies))
        turn = self._turn = self._session.begin(self._instance, (self.event,))
        # A request from outside is not passed on, but sent to others in the agent's own name.
        turn.depth = self._depth
        turn.received = (self.event if self._caller else "", self._payload)
        return turn

    @in_step(None)
    def _fail(self, error: BaseException) -> None:
        """End the call after an exception or a cancellation, leaving nothing open."""
        caller, session = self._caller, self._session
        session.release(self._answer or self.event)
        if caller is None:
            kind: Failure = "limit" if isinstance(error, self.limits) else "error"
            (self._turn or self._begin_turn()).abandon(error, answer=self._answer, kind=kind)
            return
        caller.call_failed(self.event)
        if self._turn is None and caller.is_open:  # the agent never ran
            session.withdraw(self._instance, (self.event,), caller.instance)
            caller.receive(self.event)
            return
        turn = self._turn or self._begin_turn()
        caller.receive(turn.abandon(error, caller.address, answer=self._answer))


class StreamedCall(Call):
    """The call of an asynchronous generator, iterated in place of the agent's generator.

    The items pass through as they come; the answer is the list of all items. An item cannot be
    taken back, so the answer never comes back.
    """

    def __init__(self, session: Session, agent: str, payload: Any, start: StartAgent) -> None:
        """Report the call to the monitor.

        Args:
            session: The session of the team.
            agent: The callee.
            payload: The arguments of the call, as plain JSON.
            start: Makes the agent's async generator.
        """
        super().__init__(session, agent, payload, bounces=lambda: False)
        self._start = start
        self._items: AsyncGenerator[Any, Any] | None = None
        self._pieces = Pieces()

    async def asend(self, value: Any) -> Any:
        """Return the next item; the agent begins before the first item."""
        if self._items is None:
            with self:
                turn = await self._begin_when_released()
                with inside(turn):
                    self._items = self._start(self._agent, turn.notes)
        return await self._next(self._items.asend(value))

    async def athrow(self, error: BaseException) -> Any:
        """Raise an exception where the agent has yielded last, and return the next item."""
        assert self._items is not None
        return await self._next(self._items.athrow(error))

    async def aclose(self) -> None:
        """Close the generator; a second call does nothing."""
        turn = self._turn
        if turn is None or self._items is None:
            return
        with self, inside(turn):
            await self._items.aclose()
        if turn.is_open:
            self._send_answer(turn, self._pieces.payload())
            self._session.release(self._answer)
            self._deliver_answer(turn)

    async def _next(self, step: Awaitable[Any]) -> Any:
        assert self._turn is not None
        try:
            with inside(self._turn):
                item = await step
        except StopAsyncIteration:
            await self._was_bounced(self._turn, self._pieces.payload())
            raise
        except BaseException as error:
            with self:  # what was streamed cannot be taken back, so nothing begins again
                self._hands_back(self._turn, error, again=False)
                raise
        self._pieces.add(self._payload_of(item))
        return item


class HookedCall(Call):
    """The call of an agent under a framework with hooks.

    Attributes:
        turn: The turn of the agent at work, after `begin`.
        may_bounce: Whether an answer to the outside can come back at this moment.
        shown_notes: The number of the notes of the turn that the agent has had.
        is_last: Whether the turn is the last turn of a request at a limit, after a hand-over.
    """

    shown_notes = 0
    is_last = False

    def __init__(
        self, session: Session, agent: str, payload: Any, *, may_bounce: bool = True,
        limits: tuple[type[BaseException], ...] = (), traceparent: str | None = None,
    ) -> None:  # fmt: skip
        """Report the call to the monitor.

        Args:
            session: The session of the team.
            agent: The callee.
            payload: The arguments of the call, as plain JSON.
            may_bounce: See above.
            limits: The framework's errors at a limit of its own.
            traceparent: The W3C trace context of the call, if it has one.
        """
        self.may_bounce = may_bounce
        self.limits = (*self.limits, *limits)
        super().__init__(
            session, agent, payload, bounces=lambda: self.may_bounce, traceparent=traceparent
        )
        self.turn = Turn(self.guard, self._session.holds, "", ())
        self._seats = Seats(self._session.instances)  # of agents that have handed over

    @property
    def agent(self) -> str:
        """The name of the agent with the floor."""
        return self._agent

    async def begin(self) -> Turn:
        """Begin the turn of the agent with the floor, after the release of the event.

        At a limit of the budget after a hand-over, the entry agent has the floor instead, once,
        with a note.
        """
        self.turn, self.shown_notes = await self._begin_when_released(), 0
        return self.turn

    def readdress(self, agent: str) -> None:
        """Give the floor to another agent, before the first turn or in place of a next turn."""
        instance = self.guard.run(self._seats.take, agent, default=agent)
        self._session.withdraw(self._instance, (self.event,), instance)
        self._agent, self._instance = agent, instance

    @in_step(None)
    def give_floor(
        self, agent: str, payload: Any, dropped: Iterable[Any] = (), *, silent: bool = False
    ) -> None:
        """End the turn, and give the floor to another agent; `begin` begins the next turn.

        Args:
            agent: The next agent.
            payload: The words of the agent that hands over, as plain JSON.
            dropped: The payloads of further hand-overs, which the framework does not carry out.
            silent: Whether the agent says nothing of its own (see `Turn.hand_over`).
        """
        self._seats.keep(self.turn.instance)
        instance = self._seats.take(agent)
        handed = self.turn.hand_over(
            instance, payload, HANDOFF, silent=silent, dropped=dropped, available=(self.event,)
        )
        self.event = next(iter(handed.events), "")
        self._payload = self._payload if handed.is_passed_on else payload
        self._agent, self._instance, self._turn = agent, instance, None

    def begin_now(self) -> Turn:
        """Begin the agent's turn in the calling thread, after the release of the call."""
        self._session.block_until_released(self.event)
        self.turn = self._begin()
        return self.turn

    async def answer(self, result: Any) -> bool:
        """Hand over the agent's answer; returns whether the answer has come back to the agent."""
        is_back = await self._was_bounced(self.turn, self._payload_of(result))
        if not is_back:
            self._leave_seats()
        return is_back

    async def answer_or_go_on(self, result: Any) -> list[str]:
        """Hand over an answer; returns the new notes if the answer has come back, else none."""
        if not await self.answer(result):
            return []
        if notes := self.new_notes():
            return notes
        self.may_bounce = False  # nothing to go on with: the monitor has failed
        await self.answer(result)
        return []

    def new_notes(self) -> list[str]:
        """Return the texts of the notes that are new to the agent."""
        none: tuple[str, ...] = ()
        notes = self.guard.run(self.turn.listen, default=none)
        fresh, self.shown_notes = notes[self.shown_notes :], len(notes)
        return [NOTE.format(note) for note in fresh]

    @in_step(None)
    def answer_now(self, result: Any) -> None:
        """Report an answer already in the hands of the caller: no answer to send back."""
        self.may_bounce, turn = False, self._turn or self._begin_turn()
        self._send_answer(turn, self._payload_of(result))
        self._session.release(self._answer)
        self._deliver_answer(turn)
        self._leave_seats()

    def answer_in_thread(self, result: Any) -> bool:
        """Hand over an answer from the calling thread; returns whether the answer has come back."""
        return self._was_bounced_now(self.turn, self._payload_of(result))

    def fail(self, error: BaseException) -> None:
        """End the call without an answer; the error is not raised."""
        self._fail(error)

    def refused(self) -> Account | None:
        """The account of a request at a limit; ``None``: the agent may go on."""
        events = (event.id for event in self.turn.events)
        return self._session.refuses(*events, but="turns")

    def keep_answer(self, error: BaseException) -> None:
        """Let the first answer stand, after an error of the agent."""
        self.may_bounce = False
        self.guard.incident("bounce failed", {"agent": self.turn.instance, "why": repr(error)})

    def hands_back(self, error: BaseException) -> bool:
        """Whether the agent has the last turn of a request stopped by an error at a limit.

        Raises:
            BudgetExceeded: The agent has had its last turn.
        """
        return self._hands_back(self.turn, error)

    def _begin(self) -> Turn:
        turn, account = self.guard.run(self._begin_if_allowed, default=None), self._refused
        if account is None or self._caller is not None or not self._seats:
            return turn or super()._begin()
        if not self._session.hand_back(account):
            raise account.exceeded()
        if self._agent != account.entry:
            self.readdress(account.entry)
        self.is_last, turn = True, self._begin_turn()
        turn.notebook.texts.append(account.note)
        return turn

    def _fail(self, error: BaseException) -> None:
        super()._fail(error)
        self._leave_seats()

    def _leave_seats(self) -> None:
        self.guard.run(self._seats.leave, default=None)


class ToolCalls:
    """The tools of agents, shown as calls of the agent `tool:NAME`; every method is a step.

    A tool whose end the framework does not report is given up with the turn that called it.

    Attributes:
        guard: The guard of the session.
    """

    def __init__(self, session: Session) -> None:
        self.guard, self._session = session.guard, session
        self._open: dict[Hashable, tuple[Turn, str, str]] = {}  # key -> caller, instance, event
        self._turns: dict[Hashable, Turn] = {}  # key -> the turn of a tool at work
        self._ends: dict[Hashable, str] = {}  # key -> the result or notice of a tool that is over

    @in_step("")
    def call(self, key: Hashable, caller: Turn, name: str, arguments: Any) -> str:
        """Report the call of a tool; the tool begins unless a gate keeps the call.

        Args:
            key: The framework's key of the call.
            caller: The turn of the agent.
            name: The tool.
            arguments: The arguments of the tool.

        Returns:
            The event; await `Session.wait_until_released`, then `begin`.
        """
        instance = self._session.reserve_instance(f"{TOOL}{name}")
        event = caller.send(as_payload(arguments), instance, TOOL_CALL)
        self._open[key] = caller, instance, event
        if not self._session.is_held(event):
            self.begin(key)
        return event

    @in_step(None)
    def begin(self, key: Hashable) -> None:
        """Begin the tool's turn, whether the call is held or not; a second call does nothing."""
        if key in self._open and key not in self._turns and key not in self._ends:
            _, instance, event = self._open[key]
            self._turns[key] = self._session.begin(instance, (event,), at_once=True)

    @in_step("")
    def complete(self, key: Hashable, result: Any) -> str:
        """Report a tool's result to the agent, unless a gate keeps the result.

        Returns:
            The event; await `Session.wait_until_released`, then `receive`.
        """
        event = self._end(key, lambda tool, to: tool.end(as_payload(result), to, "tool_result"))
        if not self._session.is_held(event):
            self.receive(key)
        return event

    @in_step(None)
    def fail(self, key: Hashable, error: BaseException) -> None:
        """Report a tool's exception, as a notice to the agent; of a held result, release it."""
        self._end(key, lambda tool, to: tool.fail(error, to))
        self.receive(key)

    @in_step(None)
    def receive(self, key: Hashable) -> None:
        """Give the agent the end of a tool, whether held or not; a second call does nothing.

        The agent goes on when all awaited answers have come.
        """
        if key in self._ends:
            self._open.pop(key)[0].receive(self._ends.pop(key), at_once=True)

    async def release(
        self, report: Callable[..., str], go_on: Callable[[Any], None], key: Hashable, *args: Any
    ) -> None:
        """Report a call or a result, and go on after the release; no step itself.

        Args:
            report: `call` or `complete`.
            go_on: `begin` or `receive`.
            key: The framework's key of the call.
            args: The further arguments of `report`.
        """
        await self._session.wait_until_released(report(key, *args))
        go_on(key)

    @in_step(None)
    def give_up(self, error: BaseException, caller: Turn | None = None) -> None:
        """Fail the open calls of a turn, by default of all turns."""
        for key in [key for key, call in self._open.items() if caller in (None, call[0])]:
            self.fail(key, error)

    def _end(self, key: Hashable, end: Callable[[Turn, tuple[str, ...]], str]) -> str:
        if key in self._open and key not in self._ends:
            self.begin(key)
            caller = self._open[key][0]
            self._ends[key] = end(self._turns.pop(key), caller.address)
        return self._ends.get(key, "")


def draw_session(session: Session, around: AdapterState | None) -> Session:
    """The session of a new request: that of the state around it, or else by chance."""
    return around.session if around else session.guard.call(session.of_call, default=session)


def current_turn(session: Session) -> Turn | None:
    """The innermost open turn of a session around the running code."""
    return session.current_turn()
