"""Calls between the agents of a team of async callables, as faults see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from dig.detectors.thresholds import MOST_SECONDS


@dataclass(frozen=True, slots=True)
class Call:
    """One agent calls another, or somebody outside calls an agent.

    Attributes:
        agent: Who is called.
        caller: Who calls; ``None``: somebody outside.
        args: What it is called with.
        kwargs: The same, by name.
        method: Which method of the agent, if it has several.
        others: The agents that could be called instead.
        remaining_s: Seconds until the fault ends.
    """

    agent: str
    caller: str | None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    method: str = ""
    others: tuple[str, ...] = ()
    remaining_s: float = MOST_SECONDS


Go = Callable[[Call], Awaitable[Any]]
"""Has a call made, or another one instead; what it returns or raises is the callee's."""
