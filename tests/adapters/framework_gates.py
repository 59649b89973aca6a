"""Gates that keep some events for a while, and then have a wish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import anyio

from dig import Hold, Inject, InteractionGraph, Pending
from dig.detectors import standard
from dig.detectors.interventions import Intervention
from dig.runtime.setup import Setup

Keeps = Callable[[InteractionGraph, Pending], bool]
"""Whether a gate keeps an event."""

NEVER = float("inf")
"""After how many seconds a gate decides that never does."""


def messages(graph: InteractionGraph, event: Pending) -> bool:
    return event.type != "notice"


def questions(graph: InteractionGraph, event: Pending) -> bool:
    return event.type == "message"


def answers(graph: InteractionGraph, event: Pending) -> bool:
    return event.final


def results(graph: InteractionGraph, event: Pending) -> bool:
    return event.type == "tool_result"


def of(*payloads: Any) -> Keeps:
    return lambda graph, event: event.payload in payloads


def to(agent: str) -> Keeps:
    return lambda graph, event: agent in graph.event(event.id).flight


class Keeper:
    """A gate.

    Attributes:
        payloads: What it keeps.
        keeps: Whether it keeps an event, if that does not depend on payloads.
        after_s: After how many seconds it decides.
        wishes: Makes what it decides, of the id of the event.
        hold_s: For how many seconds an event is held at most.
        seen: The payloads of what it has kept.
    """

    name = "keeper"

    def __init__(
        self, *payloads: Any, keeps: Keeps | None = None, after_s: float = 1.0,
        wishes: Sequence[Callable[[str], Intervention]] = (), hold_s: float = 10.0,
    ) -> None:  # fmt: skip
        self.keeps = keeps or of(*payloads)
        self.after_s = after_s
        self.wishes = wishes
        self.hold_s = hold_s
        self.seen: list[Any] = []

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        return Hold(self.hold_s) if self.keeps(graph, event) else None

    async def decide(self, event: Pending) -> Sequence[Intervention]:
        self.seen.append(event.payload)
        if self.after_s == NEVER:
            await anyio.sleep_forever()
        elif self.after_s:
            await anyio.sleep(self.after_s)
        return [wish(event.id) for wish in self.wishes]


def usher(*notes: str, keeps: Keeps = messages, after_s: float = 0.0) -> Keeper:
    """A gate that keeps every message for no time, and puts notes beside it."""
    wishes = [partial(Inject, note=note) for note in notes]
    return Keeper(keeps=keeps, after_s=after_s, wishes=wishes, hold_s=60.0)


def behind(gate: Keeper) -> Callable[[], Setup]:
    """What makes a setup in which nothing but a gate intervenes."""
    return lambda: Setup(detectors=standard, healers=dict, gates=[gate])
