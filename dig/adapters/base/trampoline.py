"""Deeply nested calls without filling Python's stack.

A monitored call has frames of its own, so agents that call each other a few hundred times deep
would reach the interpreter's limit earlier than alone. Every `SEGMENT` calls a coroutine is not
awaited on top of its caller: it is handed down to a trampoline, which runs it while its caller is
suspended. The limit of frames is the team's own: `sys.getrecursionlimit()`, without ours.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Coroutine, Generator
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from pathlib import Path
from typing import Any

SEGMENT = 16
"""The number of nested calls on top of each other; a lesser depth knows no trampoline."""

_SUSPENDS = CO_ASYNC_GENERATOR | CO_COROUTINE | CO_GENERATOR | CO_ITERABLE_COROUTINE
_OURS = str(Path(__file__).parents[1])

_Work = Coroutine[Any, Any, Any]


def flat(work: _Work, depth: int) -> Awaitable[Any]:
    """Return an awaitable in place of a coroutine, in the same frame.

    Args:
        work: The coroutine of a monitored call.
        depth: The number of monitored calls around this one.
    """
    if depth % SEGMENT or depth == 0:
        return work
    frames = _frames_above_trampoline()
    # A caller that handles an exception must stay below on the stack: Python takes the context of
    # a new exception from there.
    if frames is None or sys.exc_info()[1] is not None:
        return _Trampoline(work)
    return _Nested(work, frames)


def _frames_above_trampoline() -> int | None:
    """The number of frames of the team between the caller and the nearest trampoline.

    ``None``, if there is no trampoline, or a frame between them would not hand a coroutine down:
    a task that begins at once, or a function that runs a coroutine by hand.
    """
    frame, frames = sys._getframe(2), 0
    while frame.f_code.co_flags & _SUSPENDS:
        if frame.f_code is _Trampoline.__await__.__code__:
            return frames
        frames += not frame.f_code.co_filename.startswith(_OURS)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


class _Nested:
    """A coroutine on the way down to the trampoline."""

    def __init__(self, work: _Work, frames: int) -> None:
        self.work = work
        self.frames = frames

    def __await__(self) -> Generator[_Nested, Any, Any]:
        return (yield self)


class _Trampoline:
    """Runs a coroutine, and coroutines handed down from within."""

    def __init__(self, work: _Work) -> None:
        self._running = [work]
        self._frames = [0]  # of the team, below each coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                work = self._running[-1]
                signal = work.send(value) if error is None else work.throw(error)
            except StopIteration as stop:
                value, error = stop.value, None
                self._leave()
                if not self._running:
                    return value
            except BaseException as raised:
                self._leave()
                if not self._running:
                    raise
                value, error = None, raised
            else:
                value = error = None
                if isinstance(signal, _Nested):
                    error = self._enter(signal)
                    continue
                try:
                    value = yield signal
                except BaseException as thrown:  # a cancellation, or the closing of the coroutine
                    error = thrown

    def _enter(self, nested: _Nested) -> RecursionError | None:
        frames = self._frames[-1] + nested.frames
        if frames > sys.getrecursionlimit():
            nested.work.close()
            return RecursionError("maximum recursion depth exceeded")
        self._running.append(nested.work)
        self._frames.append(frames)
        return None

    def _leave(self) -> None:
        del self._running[-1], self._frames[-1]
