"""Plain async functions as agents: a call ends the activation, and its answer begins one.

A call is an event with its argument as payload; beside it goes a continuation, a `notice` to the
caller itself, which the activation that gets the answer consumes with it: so the graph shows the
wait (docs/wrapping.md). A call is known by the trace context of its decision, which the answer
bears, too; no id stands in a payload. A waiting coroutine dies with its process.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from dig._util.json_values import dumps, plain
from dig._util.redaction import masking_logger
from dig.errors import CallError, LostTurnError, PayloadError, SettingsError
from dig.graph.records import SYSTEM
from dig.monitor.messages import Pending
from dig.runtime.agent_errors import describe
from dig.runtime.agents import Decision, EventFate, NewEvent, View

from .names import child_context

logger = masking_logger("dig.nats")

CALL, ANSWER, FAILURE, NOTICE = "call", "answer", "failure", "notice"
"""The types of the events of calls."""

Function = Callable[[Any], Awaitable[Any]]


def is_plain(agent: object) -> bool:
    """Whether a function takes a payload: one parameter, which is no view."""
    if not inspect.isfunction(agent):
        return False
    parameters = [*inspect.signature(agent).parameters.values()]
    is_view = [p for p in parameters if p.name == "view" or p.annotation in (View, "View")]
    return len(parameters) == 1 and not is_view


@dataclass
class _Call:
    """A call of a turn: recipient, argument and trace context, and the event that answers it."""

    to: str
    argument: Any
    context: str = ""
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Pending | None = None


@dataclass
class _Turn:
    """A function at work on an event.

    Attributes:
        asked: The event that it answers.
        context: The trace context of that event.
        most: The largest number of bytes of a value.
        calls: The calls that were not sent yet.
        open: The number of calls without an answer, sent or not.
        step: Is set when it makes a call, or ends.
    """

    asked: Pending
    context: str
    most: int
    calls: list[_Call] = field(default_factory=list)
    open: int = 0
    step: anyio.Event = field(default_factory=anyio.Event)
    is_over: bool = False
    value: Any = None
    error: Exception | None = None

    def fit(self, value: Any) -> Any:
        """Return a value as plain JSON, small enough for a message."""
        if (size := len(dumps(value := plain(value)))) > self.most:
            raise PayloadError(f"a value of {size} bytes; {self.most} are the most")
        return value


current_turn: ContextVar[_Turn] = ContextVar("turn")
"""The turn of the running code."""


def call_context(turn: _Turn) -> str:
    """Make a trace context for a call of a turn; the answer bears the same."""
    return child_context(turn.context)


class Callees(Mapping[str, Function]):
    """The agents of a session as functions, wherever they run: `await team["bob"](x)`.

    Attributes:
        outside: Poses a problem to an agent; for calls that no agent's function makes.
    """

    outside: Callable[..., Awaitable[Any]] | None = None

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Begin with the names of this process; any other name can be called, too."""
        self._names = tuple(names)

    def __getitem__(self, name: str) -> Function:
        """The function that calls an agent."""
        return partial(self._call, name)

    def __iter__(self) -> Iterator[str]:
        """The names of this process."""
        return iter(self._names)

    def __len__(self) -> int:
        """The number of agents of this process."""
        return len(self._names)

    def begin(self, name: str, argument: Any, context: str = "") -> _Call:
        """Call an agent in the turn of the running code; `done` is set with the answer.

        Args:
            name: The agent.
            argument: The argument of the call.
            context: The trace context of the call; empty: a new one.
        """
        turn = current_turn.get()
        call = _Call(name, turn.fit(argument), context)
        turn.calls.append(call)
        turn.open += 1
        turn.step.set()
        return call

    async def _call(self, name: str, argument: Any) -> Any:
        if current_turn.get(None) is None:
            if self.outside is None:
                raise SettingsError(f"{name!r} can be called inside an agent's function alone")
            return await self.outside(argument, (name,))
        call = self.begin(name, argument)
        await call.done.wait()
        assert call.answer is not None
        if call.answer.type == FAILURE:
            kind = LostTurnError if "LostTurnError" in call.answer.payload else CallError
            raise kind(f"{name}: {call.answer.payload}")
        return call.answer.payload


team = Callees()
"""The agents of the session for which a function works, for modules that `digmon agent` loads."""


@dataclass(frozen=True)
class FailedRequest:
    """The end of a turn that fails the requests it is about.

    Attributes:
        fates: The fates of its inputs.
        error: The reason.
    """

    fates: list[EventFate]
    error: str


TurnEnd = FailedRequest | Decision


class PlainAgent:
    """An agent made of a plain async function; its turns are tasks of this process."""

    def __init__(self, function: Function, tasks: TaskGroup, most: int) -> None:
        """Begin without turns; a value has at most so many bytes."""
        self._function, self._tasks, self._most = function, tasks, most
        self._waiting: dict[str, tuple[_Turn, _Call]] = {}  # by the trace context of the call
        self._latest: tuple[str, TurnEnd] | None = None

    async def step(self, view: View, contexts: Mapping[str, str]) -> TurnEnd:
        """Take one turn a step on: begin it, or hand it an answer.

        Args:
            view: The view of an activation.
            contexts: The trace contexts of its events.

        Returns:
            A decision; the turn's failure, if no caller is there to hear of it.
        """
        if self._latest is not None and self._latest[0] == view.activation:
            return self._latest[1]  # it came again; its function does not run again here
        decision = await self._step(view, contexts)
        self._latest = view.activation, decision
        return decision

    async def _step(self, view: View, contexts: Mapping[str, str]) -> TurnEnd:
        for event in view.events:
            context = contexts.get(event.id, "")
            if event.type in (ANSWER, FAILURE):
                if context not in self._waiting:
                    return self._report_lost(view, event, contexts)
                turn, call = self._waiting[context]
                if call.answer is None:
                    call.answer, turn.step = event, anyio.Event()
                    turn.open -= 1
                    call.done.set()
                    # A function that has not waited for the answer may be over by now.
                    if not (turn.open or turn.is_over):
                        await turn.step.wait()
                if not turn.open or turn.calls:
                    return self._consume(view, turn, contexts)
                # It waits for other answers, and consumes all of them at once.
            elif event.final and event.sender == view.agent:
                answer = NewEvent(payload=event.payload, type="solution", final=True)
                return Decision(fates=_consume_all([event]), outputs=[answer])
            elif event.type != NOTICE and event.sender != SYSTEM:
                turn = _Turn(event, context, self._most)
                self._tasks.start_soon(self._run, turn)
                await turn.step.wait()
                return self._decide(view, turn, [event])
        for event in view.events:
            pair = self._waiting.get(contexts.get(event.id, ""))
            if event.type == NOTICE and pair is not None and pair[0].calls:
                return self._decide(view, pair[0], [event])  # another call of the same moment
        return Decision.wait()

    async def _run(self, turn: _Turn) -> None:
        current_turn.set(turn)
        try:
            turn.value = turn.fit(await self._function(turn.asked.payload))
        except Exception as error:
            turn.error = error
        turn.is_over = True
        turn.step.set()

    def _consume(self, view: View, turn: _Turn, contexts: Mapping[str, str]) -> TurnEnd:
        """Go on with the answers that are there, each with its continuation."""
        answered = {
            context
            for context, (waiting, call) in self._waiting.items()
            if waiting is turn and call.answer is not None
        }
        inputs = [event for event in view.events if contexts.get(event.id) in answered]
        decision = self._decide(view, turn, inputs)
        for context in answered:
            del self._waiting[context]
        return decision

    def _report_lost(self, view: View, event: Pending, contexts: Mapping[str, str]) -> TurnEnd:
        context = contexts.get(event.id, "")
        notices = [e for e in view.events if e.type == NOTICE and contexts.get(e.id) == context]
        caller = notices[0].payload if notices else {}
        reason = f"the process of {view.agent} ended while it waited for an answer"
        text = f"LostTurnError: {reason}"
        if not caller.get("caller"):
            return FailedRequest(_consume_all([event, *notices]), text)
        return _reply([event, *notices], caller["caller"], FAILURE, text, caller["context"])

    def _decide(self, view: View, turn: _Turn, inputs: Sequence[Pending]) -> TurnEnd:
        caller = turn.asked.sender
        fates = _consume_all(inputs)
        if turn.calls:
            call = turn.calls.pop(0)
            context = call.context or call_context(turn)
            self._waiting[context] = turn, call
            payload = {"caller": caller, "context": turn.context}
            notice = NewEvent(payload=payload, to=[view.agent], type=NOTICE)
            outputs = [NewEvent(payload=call.argument, to=[call.to], type=CALL), notice]
            return Decision(fates=fates, outputs=outputs, traceparent=context)
        if turn.error is not None:
            text = describe(turn.error)
            logger.warning("dig: %s: %s", view.agent, text)
            if caller is None or turn.asked.type != CALL:
                return FailedRequest(fates, text)
            return _reply(inputs, str(caller), FAILURE, text, turn.context)
        if caller is None:
            answer = NewEvent(payload=turn.value, type="solution", final=True)
            return Decision(fates=fates, outputs=[answer])
        return _reply(inputs, caller, ANSWER, turn.value, turn.context)


def _consume_all(events: Sequence[Pending]) -> list[EventFate]:
    return [EventFate(event=event.id, fate="consume") for event in events]


def _reply(inputs: Sequence[Pending], to: str, kind: str, payload: Any, context: str) -> Decision:
    output = NewEvent(payload=payload, to=[to], type=kind)
    fates = _consume_all(inputs)
    return Decision(fates=fates, outputs=[output], traceparent=context or None)
