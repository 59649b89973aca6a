"""Waiting for held events: a gate decides about an event, or healing has put an event off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import get_ident
from typing import Any

import anyio
from anyio.lowlevel import current_token

from dig.graph.records import SYSTEM
from dig.monitor.messages import Asked
from dig.runtime.observers import attempt

from .guard import Guard


class LoopCaller:
    """Calls functions on the event loop of a team, from any thread."""

    def __init__(self) -> None:
        """Begin without a loop: functions are called at once."""
        self._thread = get_ident()
        self._soon: Callable[[Callable[[], object]], object] | None = None

    def bind_to_current_loop(self) -> None:
        """Use the loop of the calling task; without such a loop nothing changes."""
        with suppress(RuntimeError):
            loop: Any = current_token().native_token
            self._soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
            self._thread = get_ident()

    def call(self, fn: Callable[[], object]) -> None:
        """Call a function: at once on the loop's own thread, soon from another thread."""
        if self._soon is None or get_ident() == self._thread:
            fn()
        else:
            self._soon(fn)


class BackgroundTask:
    """A task in the background; its maker need not wait, even after a cancellation.

    A task group would wait: for a thread, or whatever else a cancellation does not reach.
    """

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        """Have the current loop start the work soon; the work must not raise."""
        self._work = work
        self._scope = anyio.CancelScope()
        self._loop = LoopCaller()
        self._loop.bind_to_current_loop()
        loop: Any = current_token().native_token
        if hasattr(loop, "create_task"):
            self._task = loop.create_task(self._run())  # kept, since the loop's reference is weak
        else:
            from trio.lowlevel import spawn_system_task

            # A system task begins in the context of the loop, not in that of its maker.
            spawn_system_task(self._run, context=copy_context())

    def cancel(self) -> None:
        """Cancel the work as soon as possible; on any thread."""
        with suppress(RuntimeError):  # its loop is closed, so the work is over
            self._loop.call(self._scope.cancel)

    async def _run(self) -> None:
        with self._scope:
            await self._work()


Waker = Callable[[], None]
"""Wakes a task that waits, from any thread."""


class HoldWaiter:
    """The held events of a session, and the waiting tasks."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._gates: dict[str, list[Asked]] = {}  # event -> the gates that keep it
        self._deciding: dict[str, list[BackgroundTask]] = {}  # event -> its gates, at work
        self._waiting: dict[Waker, str] = {}  # the waker of a task -> the event it awaits

    def ask(self, question: Asked) -> None:
        """Register the gate of a held event; the first task to wait for the event runs the gate.

        No task ever waits for a continuation, so its gates are resolved at once.
        """
        event = question.event
        recipients = self._guard.monitor.graph.event(event.id).flight
        if event.type == "notice" and [*recipients] == [event.sender]:
            self._resolve(question, (), None)
            return
        self._gates.setdefault(question.event.id, []).append(question)

    def has_news(self, instance: str, activation: str) -> bool:
        """Whether healing has sent events to an agent since an activation began."""
        graph = self._guard.monitor.graph
        begun = graph.activations.get(activation)
        if begun is None:
            return False
        new = graph.agents[instance].buffer.keys() - {event.id for event in begun.inputs}
        return any(graph.event(event).by == SYSTEM for event in new)

    def is_held(self, event: str) -> bool:
        """Whether an event is still on the way; inside a step."""
        graph = self._guard.monitor.graph
        state = graph.find(event)
        if state is None:  # it was sent to no agent, or is long closed
            return False
        if state.flight or not state.final:
            return bool(state.flight)
        return not (graph.is_accepted(event) or graph.is_bounced(event))

    async def wait_until_released(self, event: str) -> None:
        """Wait until an event is not held, and run the gates of the event."""
        guard = self._guard
        if not guard.run(self.is_held, event, default=False):
            return
        if event not in self._deciding:
            gates = self._gates.get(event, ())
            self._deciding[event] = [BackgroundTask(partial(self._decide, gate)) for gate in gates]
        loop = LoopCaller()
        loop.bind_to_current_loop()
        while guard.run(self.is_held, event, default=False):
            released = anyio.Event()
            waker = partial(loop.call, released.set)
            self._waiting[waker] = event
            due = guard.due
            try:
                # The task keeps time itself, for the session may have no watchdog.
                with anyio.move_on_after(None if due is None else max(0.0, due - guard.now())):
                    await released.wait()
            finally:
                self._waiting.pop(waker, None)
            guard.tick()
        self._forget(event)

    def release(self, event: str) -> None:
        """Release an event unchanged; inside a step."""
        for question in self._forget(event):
            self._resolve(question, None, "who waited for it was cancelled")
        if self.is_held(event):
            monitor = self._guard.monitor
            state = monitor.graph.event(event)
            self._guard.ask(monitor.redirect, event, () if state.final else tuple(state.flight))

    def release_unawaited(self) -> None:
        """Release all events without a waiting task; inside a step.

        After a failure an adapter may have lost the ids of events on their way. An event that no
        task will ever wait for stays held until its gate's deadline, and keeps back all that is
        sent to the same agent after it.
        """
        agents = self._guard.monitor.graph.agents.values()
        for event in dict.fromkeys(event for agent in agents for event in agent.incoming):
            if event not in self._waiting.values():
                self.release(event)

    def wakers(self) -> list[Waker]:
        """The wakers of tasks whose event has been released; inside a step."""
        if not self._waiting:
            return []
        is_on, waiting = self._guard.is_on, tuple(self._waiting.items())
        return [waker for waker, event in waiting if not (is_on and self.is_held(event))]

    def _forget(self, event: str) -> Sequence[Asked]:
        """Cancel the running gates of an event; returns all gates of the event."""
        for task in self._deciding.pop(event, ()):
            task.cancel()
        return self._gates.pop(event, ())

    async def _decide(self, question: Asked) -> None:
        decision, raised = await attempt(partial(question.gate.decide, question.event))
        error = f"raised {raised!r}" if raised else None
        self._guard.run(self._resolve, question, decision, error, default=None)

    def _resolve(self, question: Asked, decision: Any, error: str | None) -> None:
        resolve = self._guard.monitor.resolve
        self._guard.ask(resolve, question.gate, question.event.id, decision, error)


class RecipientOrder:
    """Keeps the order of messages for each recipient, although some messages are held."""

    def __init__(self) -> None:
        self._last: dict[Hashable, anyio.Event] = {}  # recipient -> set when all before have passed

    async def wait_turn(
        self, recipient: Hashable, wait: Callable[[], Awaitable[None]] | None
    ) -> None:
        """Wait for a message, and then for all earlier messages to the same recipient.

        Args:
            recipient: The recipient.
            wait: Waits until the message is released; ``None``: it is not held. If no earlier
                message waits either, nothing is awaited.
        """
        before = self._last.get(recipient)
        if before is None and wait is None:
            return
        passed = self._last[recipient] = anyio.Event()
        try:
            if wait is not None:
                await wait()
            if before is not None:
                await before.wait()
        finally:
            passed.set()
            if self._last.get(recipient) is passed:
                del self._last[recipient]
