"""What wrapping adds to a transfer between agents of Google ADK, beside it, in CPU time.

Twenty agents transfer down a line, with a few words, and do nothing else, so a message here is
nothing but its cost: a real one takes a model's seconds.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from dig.adapters import Mode

from .wrapped import TEXT, Say, between, monitored, small, speaking

AGENTS = tuple(f"worker_{i}" for i in range(20))
WARM_UP = 2  # runs


async def times(mode: Mode | None, is_kept: bool, runs: int, say: Say = small) -> list[float]:
    """How long each transfer took, in microseconds, after some runs to warm up."""
    from tests.adapters.google_adk_teams import ask

    logging.getLogger("google_adk").setLevel(logging.ERROR)  # it warns of transfers, and of usage
    moments: list[float] = []
    team, taken = line(moments, say), []
    with monitored(team, mode, is_kept) as team:
        for run in range(WARM_UP + runs):
            moments.clear()
            await ask(team, TEXT)
            if run >= WARM_UP:
                taken += between(moments)
    return taken


def line(moments: list[float], say: Say) -> Any:
    from google.genai import types

    from tests.adapters.google_adk_teams import agent
    from tests.adapters.harness import AtOnce

    speak = speaking(say)

    def clerk(to: str) -> Any:
        """A model that says a few words, and transfers to the next agent, if there is one."""

        def reply(contents: Any, number: int) -> list[types.Part]:
            moments.append(time.thread_time())
            call = types.Part.from_function_call(name="transfer_to_agent", args={"agent_name": to})
            return [types.Part.from_text(text=speak(len(moments))), *([call] if to else [])]

        return reply

    last = agent(AtOnce(), AGENTS[-1], clerk(""))
    for name, to in zip(AGENTS[-2::-1], AGENTS[:0:-1], strict=True):
        last = agent(
            AtOnce(), name, clerk(to), sub_agents=[last], disallow_transfer_to_parent=True
        )  # fmt: skip
    return last
