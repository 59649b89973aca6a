"""What wrapping adds when an agent asks another over A2A, beside it, in CPU time of its thread.

An agent asks another one twenty times, with a few words, in one process without a network, and
they do nothing else, so a message here is nothing but its cost: a real one takes a model's seconds.
"""

from __future__ import annotations

import time
from typing import Any

from dig.adapters import Mode

from .wrapped import TEXT, Say, between, monitored, small, speaking

ASKED = 20
WARM_UP = 2  # runs


async def times(mode: Mode | None, is_kept: bool, runs: int, say: Say = small) -> list[float]:
    """How long each question took with its answer, in microseconds, after some runs to warm up."""
    from tests.adapters.a2a_teams import ask, team, words
    from tests.adapters.harness import AtOnce

    moments: list[float] = []
    speak = speaking(say)

    async def ask_often(agent: Any, context: Any, updater: Any) -> str:
        for turn in range(1, ASKED + 1):
            moments.append(time.thread_time())
            await words(agent.peers["helper"], speak(turn))
        moments.append(time.thread_time())
        return "all done"

    members = team(AtOnce(), asker=ask_often, helper=lambda *_: speak(1))
    taken = []
    with monitored(members, mode, is_kept):
        for run in range(WARM_UP + runs):
            moments.clear()
            await ask(members.clients["asker"], TEXT)
            if run >= WARM_UP:
                taken += between(moments)
    return taken
