"""Cases that together come through every call that AG2 classic's adapter makes of a session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any

from dig.detectors import standard
from dig.runtime.host import Setup

from .ag2_classic_asked import SCENARIOS, chat, in_group, interrupted, nested_now
from .ag2_classic_teams import Watched as Framework
from .ag2_classic_teams import ask, ask_now, scenario, shown
from .framework_cases import Case, Wrap
from .harness import Scenario
from .test_ag2_classic_healing import in_background, ping_pong, twice, two_at_once
from .test_ag2_classic_waiting import feedback
from .test_gates import Keeper

PLAIN = [
    "chat-ask", "chat-ask_now", "chat-bounded", "group-ask",
    "nested-ask", "failing-ask", "desks-in_group_now",
]  # fmt: skip


class Watched(Framework):
    """Wraps what a team is wrapped by, and hands on the rest of it."""

    def __call__(self, built: Any) -> Any:
        super().__call__(built.wrap)
        return built


def behind(*kept: str, after_s: float = 0.0) -> Callable[[], Setup]:
    """Makes a setup in which nothing but a gate intervenes."""
    return lambda: Setup(detectors=standard, healers=dict, gates=[Keeper(*kept, after_s=after_s)])


async def ask_briefly(built: Any) -> Any:
    """Somebody does not wait for long, which is long enough for the agents themselves."""
    async with asyncio.timeout(4.5):
        return await ask(built)


def on_a_thread(wrap: Wrap) -> Scenario:
    """A chat without a loop, in real time."""

    async def drive(built: Any) -> Any:
        found: list[Any] = []

        def run() -> None:
            result = built.user.initiate_chat(built.first, message="What now?", silent=True)
            found.append(shown(result))

        thread = Thread(target=copy_context().run, args=(run,))
        thread.start()
        thread.join()
        return found

    if isinstance(wrap, Watched):
        wrap.clock = time.monotonic  # type: ignore[method-assign]
    asked = scenario(chat, drive, "on_a_thread")
    return Scenario(asked.name, lambda script: wrap(asked.build(script)), asked.drive)


# Who has to look again says the same again: a note may be lost when it has been sent back already.
CASES = [
    *(Case(asked) for asked in SCENARIOS if asked.name in PLAIN),
    Case(scenario(interrupted, ask_now)),
    Case(scenario(ping_pong, in_group)),
    Case(scenario(partial(two_at_once, told="Half of it"), in_group, "two_at_once")),
    Case(scenario(twice), options={"same_work": True}),
    Case(scenario(feedback)),
    Case(scenario(partial(in_background, told="Half TERMINATE"), ask, "in_background")),
    Case(scenario(chat), behind("One", "Three TERMINATE")),
    Case(scenario(chat, ask_briefly), behind("One", after_s=5.0)),
    Case(scenario(chat, ask_briefly), behind("Three TERMINATE", after_s=5.0)),
    Case(scenario(nested_now), behind("And?")),
    Case(on_a_thread, behind("One")),
]
