"""Waiting for what is held: a gate decides about it, or healing has put it off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

import anyio
from anyio.lowlevel import current_token

from dig.monitor.messages import Asked
from dig.runtime.observers import attempt

if TYPE_CHECKING:
    from .steps import Steps


class OnLoop:
    """Has something done where a team runs, from whatever thread."""

    def __init__(self) -> None:
        """Begin without a loop: what is to be done is done at once."""
        self._thread = get_ident()
        self._soon: Callable[[Callable[[], object]], object] | None = None

    def is_here(self) -> None:
        """The team runs on the loop of the task that calls this; a loop of one's own is none."""
        with suppress(RuntimeError):
            loop: Any = current_token().native_token
            self._soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
            self._thread = get_ident()

    def run(self, work: Callable[[], object]) -> None:
        """Do something, at once or soon."""
        if self._soon is None or get_ident() == self._thread:
            work()
        else:
            self._soon(work)


class Bell:
    """Wakes the task that made it; may be rung on any thread."""

    def __init__(self) -> None:
        """Belong to the task that runs."""
        self._rung = anyio.Event()
        self._loop = OnLoop()
        self._loop.is_here()

    def ring(self) -> None:
        """Wake the task, once."""
        self._loop.run(self._rung.set)

    async def wait(self) -> None:
        """Wait until it rings."""
        await self._rung.wait()


class Aside:
    """Work beside the task that makes this, which need not wait for it, cancelled or not.

    A task group would wait: for a thread, or whatever else a cancellation does not reach.
    """

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        """Have the loop begin it soon; it must not raise."""
        self._work = work
        self._scope = anyio.CancelScope()
        self._loop = OnLoop()
        self._loop.is_here()
        loop: Any = current_token().native_token
        if hasattr(loop, "create_task"):
            self._task = loop.create_task(self._run())  # the loop itself would let go of it
        else:
            from trio.lowlevel import spawn_system_task

            spawn_system_task(self._run, context=copy_context())

    def cancel(self) -> None:
        """Be done with it, as soon as it can be cancelled; on any thread."""
        with suppress(RuntimeError):  # its loop is closed, and it is over
            self._loop.run(self._scope.cancel)

    async def _run(self) -> None:
        with self._scope:
            await self._work()


class Holding:
    """What is held in a session, and who waits for it."""

    def __init__(self, steps: Steps) -> None:
        """Begin with nothing held."""
        self._steps = steps
        self._asked: dict[str, list[Asked]] = {}  # event -> the gates that keep it
        self._deciding: dict[str, list[Aside]] = {}  # event -> its gates, begun by who waits first
        self._bells: dict[Bell, str] = {}

    def ask(self, asked: Asked) -> None:
        """A gate keeps an event; whoever waits for that runs it, and nobody for a continuation."""
        event = asked.event
        recipients = self._steps.monitor.graph.event(event.id).flight
        if event.type == "notice" and [*recipients] == [event.sender]:
            self._resolve(asked, (), None)
            return
        self._asked.setdefault(asked.event.id, []).append(asked)

    def is_held(self, event: str) -> bool:
        """Whether an event is on its way still; inside a step."""
        graph = self._steps.monitor.graph
        if not graph.knows(event):  # nobody was sent anything, or it is long closed
            return False
        state = graph.event(event)
        if state.flight or not state.final:
            return bool(state.flight)
        return not (graph.is_accepted(event) or graph.is_bounced(event))

    def is_awaited(self, event: str) -> bool:
        """Whether somebody waits for an event; inside a step."""
        return event in self._bells.values()

    async def released(self, event: str) -> None:
        """Wait until an event is not held, and run the gates that keep it."""
        if not self._steps.step(self.is_held, event, otherwise=False):
            return
        if event not in self._deciding:
            gates = self._asked.get(event, ())
            self._deciding[event] = [Aside(partial(self._decide, asked)) for asked in gates]
        await self._wait(event)
        self._forget(event)

    def let_go(self, event: str) -> None:
        """Release an event as it is; inside a step."""
        for asked in self._forget(event):
            self._resolve(asked, None, "who waited for it was cancelled")
        if self.is_held(event):
            monitor = self._steps.monitor
            state = monitor.graph.event(event)
            self._steps.ask(monitor.redirect, event, () if state.final else tuple(state.flight))

    def freed(self) -> list[Bell]:
        """The bells of those whose event is not held any more; inside a step."""
        waiting = tuple(self._bells.items())
        return [b for b, event in waiting if not (self._steps.is_on and self.is_held(event))]

    def _forget(self, event: str) -> Sequence[Asked]:
        """Wait for its gates no more; returns these."""
        for one in self._deciding.pop(event, ()):
            one.cancel()
        return self._asked.pop(event, ())

    async def _wait(self, event: str) -> None:
        steps = self._steps
        while steps.step(self.is_held, event, otherwise=False):
            bell = Bell()
            self._bells[bell] = event
            due = steps.next_deadline()
            try:
                with anyio.move_on_after(None if due is None else max(0.0, due - steps.now())):
                    await bell.wait()
            finally:
                self._bells.pop(bell, None)
            steps.tick()

    async def _decide(self, asked: Asked) -> None:
        decided, raised = await attempt(partial(asked.gate.decide, asked.event))
        error = f"raised {raised}" if raised else None
        self._steps.step(self._resolve, asked, decided, error, otherwise=None)

    def _resolve(self, asked: Asked, decided: Any, error: str | None) -> None:
        resolve = self._steps.monitor.resolve
        self._steps.ask(resolve, asked.gate, asked.event.id, decided, error)
