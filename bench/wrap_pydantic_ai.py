"""What wrapping adds when an agent of Pydantic AI asks another in a tool, beside it, in CPU time.

An agent asks another one twenty times, with a few words, and they do nothing else, so a message
here is nothing but its cost: a real one takes a model's seconds.
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
    moments: list[float] = []
    asker, helper = pair(moments, say)
    taken = []
    with monitored({"asker": asker, "helper": helper}, mode, is_kept):
        for run in range(WARM_UP + runs):
            moments.clear()
            await asker.run(TEXT)
            if run >= WARM_UP:
                taken += between(moments)
    return taken


def pair(moments: list[float], say: Say) -> Any:
    from pydantic_ai.messages import TextPart, ToolCallPart

    from tests.adapters.harness import AtOnce
    from tests.adapters.pydantic_ai_teams import agent, as_tool

    def ask(messages: Any, number: int) -> list[Any]:
        moments.append(time.thread_time())
        turn = len(moments)
        said = speak(turn)
        return [ToolCallPart("helper", {"text": said}) if turn <= ASKED else TextPart("all done")]

    speak = speaking(say)
    helper = agent(AtOnce(), "helper", lambda messages, number: [TextPart(speak(1))])
    return agent(AtOnce(), "asker", ask, tools=[as_tool(helper)]), helper
