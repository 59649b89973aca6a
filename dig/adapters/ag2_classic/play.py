"""Carries out a script around a call, awaited or not, so that each script is written once.

A script is a generator. It yields the id of an event to wait until that is released, or `CALL` to
have the call made; what the call returns is sent to it, what it raises is thrown into it. What
the script returns is returned; `RAISE` has what was raised go on.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  agents run on it alone
from collections.abc import Callable, Generator
from typing import Any

import anyio

from dig.adapters import Session

Script = Generator[str, Any, Any]

CALL = ""
RAISE = object()
"""A script cannot raise it itself: `StopIteration` may be among what an agent raises."""


async def play(script: Script, call: Callable[[], Any], session: Session) -> Any:
    """Carry out a script around a call that is awaited."""
    part = _Part(script)
    while not part.is_over:
        try:
            got = await (session.released(part.asked) if part.asked else call())
        except BaseException as error:
            part.failed(error)
        else:
            part.got(got)
    return part.result()


def play_now(script: Script, call: Callable[[], Any], session: Session) -> Any:
    """Carry out a script around a call that is not awaited."""
    part = _Part(script)
    while not part.is_over:
        try:
            got = _wait(session, part.asked) if part.asked else call()
        except BaseException as error:
            part.failed(error)
        else:
            part.got(got)
    return part.result()


class _Part:
    """How far a script has been carried out; `asked` is what it returns, once it is over."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._error: BaseException | None = None
        self.is_over = False
        self.asked: Any = next(script)

    def got(self, value: Any) -> None:
        self._go_on(self._script.send, value)

    def failed(self, error: BaseException) -> None:
        self._error = error
        self._go_on(self._script.throw, error)

    def _go_on(self, tell: Callable[[Any], Any], what: Any) -> None:
        try:
            self.asked = tell(what)
        except StopIteration as end:
            self.is_over, self.asked = True, end.value

    def result(self) -> Any:
        error, self._error = self._error, None
        if self.asked is RAISE and error is not None:
            try:
                raise error
            finally:
                del error  # which holds this frame
        return self.asked


def _wait(session: Session, event: str) -> Any:
    """Wait on a loop of one's own; on a running one that would stop all others, so not there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        anyio.run(session.released, event)
    else:
        session.step(session.let_go, event, otherwise=None)
