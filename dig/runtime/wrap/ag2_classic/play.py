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

from dig.runtime.wrap import Session

Script = Generator[str, Any, Any]

CALL = ""
RAISE = object()
"""A script cannot raise it itself: `StopIteration` may be among what an agent raises."""


async def play(script: Script, call: Callable[[], Any], session: Session) -> Any:
    """Carry out a script around a call that is awaited."""
    asked = next(script)
    while True:
        try:
            got = await (_released(session, asked) if asked else call())
        except BaseException as error:
            is_over, asked = _thrown(script, error)
            if is_over and asked is RAISE:
                raise
        else:
            is_over, asked = _sent(script, got)
        if is_over:
            return asked


def play_now(script: Script, call: Callable[[], Any], session: Session) -> Any:
    """Carry out a script around a call that is not awaited."""
    asked = next(script)
    while True:
        try:
            got = _wait(session, asked) if asked else call()
        except BaseException as error:
            is_over, asked = _thrown(script, error)
            if is_over and asked is RAISE:
                raise
        else:
            is_over, asked = _sent(script, got)
        if is_over:
            return asked


def _sent(script: Script, got: Any) -> tuple[bool, Any]:
    """What a script asks next, or whether it is over, and what it returns."""
    try:
        return False, script.send(got)
    except StopIteration as end:
        return True, end.value


def _thrown(script: Script, error: BaseException) -> tuple[bool, Any]:
    try:
        return False, script.throw(error)
    except StopIteration as end:
        return True, end.value


async def _released(session: Session, event: str) -> None:
    try:
        await session.released(event)
    except Exception as error:  # a wait that fails is none
        session.incident("failed", {"who": "wrapper", "what": f"raised {error!r}"})


def _wait(session: Session, event: str) -> Any:
    """Wait on a loop of one's own; on a running one that would stop all others, so not there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        anyio.run(_released, session, event)
    else:
        session.let_go(event)
