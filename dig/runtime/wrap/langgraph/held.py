"""Waiting for what is held; whatever goes wrong with that, the graph goes on."""

from __future__ import annotations

from collections.abc import Iterable

from dig.runtime.wrap import Session


async def released(session: Session, events: Iterable[str]) -> None:
    """Wait until events are not held any more; where none is, nothing is awaited."""
    for event in events:
        if session.step(session.is_held, event, otherwise=False):
            try:
                await session.released(event)
            except Exception as error:  # a wait that fails is none
                session.step(_tell, error, otherwise=None)


def let_go(session: Session, events: Iterable[str]) -> None:
    """Release events now: on a thread nobody can decide about them."""
    for event in events:
        if session.step(session.is_held, event, otherwise=False):
            session.step(session.let_go, event, otherwise=None)


def _tell(error: Exception) -> None:
    raise error
