"""A message to an agent until the answer: by a client, or to an executor."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import nullcontext
from typing import Any
from weakref import WeakSet

from a2a.client.errors import A2AClientError

from dig.adapters.base import (
    ADAPTER_FAILED,
    CalledOffError,
    HookedCall,
    Session,
    Turn,
    inside,
    is_stop,
)
from dig.errors import BudgetExceeded, BudgetStop

from .words import AgentWords

LEFT = CalledOffError("the caller wants no more of the answer")
"""The reason in a trace for a stream that was left before its end."""

BUDGET = "the budget of the request is used up"
"""The text of the error that the caller of an agent gets at a limit."""

STOPPED = WeakSet[Turn]()
"""The turns with a call that was stopped at a limit; what they raise is no error of an agent."""

calls: dict[str, TaskCall] = {}
"""The calls of clients of this process that wait for an answer, by their links."""


class TaskCall(HookedCall):
    """A message to an agent, until the answer.

    Attributes:
        reading: What the agent has said.
        raised: The error that ended the call.
        is_over: Whether the end was reported.
        is_asking: Whether the agent waits for somebody's answer.
        is_served: Whether an executor of the same session reports what the agent says.
    """

    def __init__(self, session: Session, agent: str, payload: Any, **more: Any) -> None:
        """Report the message to the monitor; see `HookedCall`."""
        self.reading = AgentWords()
        self.raised: BaseException | None = None
        self.is_over = self.is_asking = self.is_served = False
        super().__init__(session, agent, payload, **more)

    async def take(self, event: Any) -> bool:
        """Report an event of the agent; returns whether the answer has come back."""
        if self.is_over:
            return False
        if self.is_asking:  # it had its answer by another way, and goes on
            self.resume(None)
        if not self.guard.run(self.reading.take, event, default=False):
            self.fail(ADAPTER_FAILED)
            return False
        end, payload = self.reading.end, self.reading.payload
        if end == "answer":
            return await self.hand_over(payload)
        if end == "asks" and self._caller is not None:
            await self.hand_over({"$asks": payload})
        elif end == "asks":  # it waits until a message about the task comes
            self.is_asking = True
            self.guard.run(self.turn.waits, payload, default=None)
        elif end:
            kind = CalledOffError if end == "canceled" else A2AClientError
            self.fail(kind(f"the task was {end}: {payload}"))
        return False

    async def hand_over(self, payload: Any) -> bool:
        """Report the answer, once; returns whether the answer has come back."""
        if self.is_over:
            return False
        with self:
            is_back = await self.answer(payload)
        self.is_over = not is_back
        if is_back:
            self.reading = AgentWords()
        return is_back

    def resume(self, payload: Any) -> None:
        """Go on after a question, with the answer."""
        self.is_asking, self.reading = False, AgentWords()
        self.guard.run(self.turn.resumes, payload, default=None)

    def receive_error(self, error: Exception) -> None:
        """Trace an error of the SDK to the error of the agent.

        Raises:
            BaseException: What the caller gets instead, at a limit.
        """
        if isinstance(self.raised, BudgetExceeded):
            raise self.raised from error
        if self.turn in STOPPED:
            raise self.stop() or error
        if self.raised is not None:
            self._session.errors.add_copy(error, self.raised)

    def stop(self) -> BaseException | None:
        """The error, if any, for the caller of a call stopped at a limit.

        Only wrapped executors know `BudgetStop`: without one the SDK's server tells nothing.
        """
        if self._caller is None:
            account = self.guard.run(
                self._session.stopped_by, BudgetStop(), self.event, default=None
            )
            return None if account is None else account.exceeded()
        outer = next((call for call in calls.values() if call.turn is self._caller), None)
        return BudgetStop() if outer is None or outer.is_served else A2AClientError(BUDGET)

    def _fail(self, error: BaseException) -> None:
        if self.is_over:
            return
        self.is_over = True
        if self._caller is not None and (is_stop(error) or self.turn in STOPPED):
            STOPPED.add(self._caller)
            error = BudgetStop()
        self.raised = error
        super()._fail(error)


async def read(call: TaskCall, items: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    """Pass a client's stream through, and hold the last item until the answer is released."""
    try:
        while True:
            with nullcontext() if call.is_served else call:
                try:
                    with inside(call.turn):
                        item = await anext(items, None)
                except Exception as error:
                    call.receive_error(error)
                    raise
                if item is not None and not call.is_served:
                    await call.take(getattr(item, item.WhichOneof("payload")))
            if item is None:
                break
            yield item
        if not (call.is_asking or call.is_served):
            await call.hand_over(call.reading.payload)
    finally:
        if not (call.is_asking or call.is_served):
            call.fail(LEFT)
        await items.aclose()
