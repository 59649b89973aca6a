"""When a group chat ends: a termination condition whose answer may come back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from autogen_agentchat.base import OrTerminationCondition

SAID = frozenset({
    "FunctionCallTermination", "FunctionalTermination", "SourceMatchTermination",
    "StopMessageTermination", "TextMentionTermination", "TextMessageTermination",
})  # fmt: skip
"""Conditions by which a participant ends the chat; the others are limits, or hand over to you."""

PERSONS = frozenset({"HandoffTermination", "ExternalTermination"})
"""Conditions by which a chat stops for a person: it is asked, or has stopped the chat itself."""

Asks = Callable[[Any], Awaitable[bool]]
"""Told of a stop message; says whether the answer came back, so that the chat goes on."""


def is_said(stop: Any) -> bool:
    """Whether a chat ends because of what was said, and not at a limit or by your own hand."""
    return {*stop.source.split(", ")} <= SAID


def is_pause(stop: Any) -> bool:
    """Whether a chat stops for a person, and goes on when that has answered."""
    return not PERSONS.isdisjoint(stop.source.split(", "))


def has_turns_left(manager: Any) -> bool:
    """Whether a chat may go on after the turn that has just ended, which is not counted yet."""
    most = manager._max_turns
    return most is None or bool(manager._current_turn + 1 < most)


class Ending:
    """Stands in place of a manager's termination condition."""

    def __init__(self, whole: Any, asks: Asks) -> None:
        """Ask `asks` whenever the condition is met."""
        self._whole = whole
        self._asks = asks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    async def __call__(self, messages: Any) -> Any:
        """Why the chat is to end; ``None``: it goes on."""
        stop = await self._whole(messages)
        if stop is None or not await self._asks(stop):
            return stop
        await _go_on(self._whole)
        return None


async def _go_on(condition: Any) -> None:
    """Have a condition that was met not be met any more; limits beside it go on counting."""
    if isinstance(condition, OrTerminationCondition):
        for part in condition._conditions:
            if part.terminated:
                await _go_on(part)
    else:
        await condition.reset()
