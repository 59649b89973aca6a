"""Waiting for what is held; whatever goes wrong with that, the graph goes on."""

from __future__ import annotations

from collections.abc import Iterable

from dig.adapters import Session

ON_A_THREAD = "the graph is called on a thread, where nobody can wait for a gate"


async def released(session: Session, events: Iterable[str]) -> None:
    """Wait until events are not held any more; where none is, nothing is awaited."""
    for event in events:
        await session.released(event)


def let_go(session: Session, events: Iterable[str], why: str = "") -> None:
    """Release events now; `why` is written down, if somebody may wonder."""
    for event in events:
        if session.step(session.is_held, event, otherwise=False):
            if why:
                session.step(
                    session.incident, "not held", {"event": event, "why": why}, otherwise=None
                )
            session.step(session.let_go, event, otherwise=None)
