"""Carries out a script around a call, awaited or not, so that each script is written once.

A script is a generator. It yields the id of an event to wait until that is released, or changes
of the call's arguments to have the call made; what the call returns is sent to it, what it raises
is thrown into it. What the script returns is returned; what was raised is raised.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  agents run on it alone
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Any

import anyio

from dig.runtime.wrap import Session

Script = Generator[str | Mapping[str, Any], Any, Any]

Make = Callable[[Mapping[str, Any]], Any]
"""Makes the call, with some of its arguments changed."""

AS_IT_IS: Mapping[str, Any] = {}


async def play(script: Script, call: Make, session: Session) -> Any:
    """Carry out a script around a call that is awaited."""
    asked = next(script)
    while True:
        try:
            got = await (_released(session, asked) if isinstance(asked, str) else call(asked))
        except BaseException as error:
            with suppress(StopIteration):
                script.throw(error)
            raise
        try:
            asked = script.send(got)
        except StopIteration as end:
            return end.value


def play_now(script: Script, call: Make, session: Session) -> Any:
    """Carry out a script around a call that is not awaited."""
    asked = next(script)
    while True:
        try:
            got = _wait(session, asked) if isinstance(asked, str) else call(asked)
        except BaseException as error:
            with suppress(StopIteration):
                script.throw(error)
            raise
        try:
            asked = script.send(got)
        except StopIteration as end:
            return end.value


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
