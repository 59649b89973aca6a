"""What wrapping adds to a task of a CrewAI crew, beside it, in CPU time of the process.

Twenty agents have a task each, with the output of the one before, and do nothing but say a few
words, so a message here is nothing but its cost: a real one takes a model's seconds.
"""

from __future__ import annotations

import time
from typing import Any

from dig.adapters import Mode

from .wrapped import TEXT, Say, between, monitored, small, speaking

AGENTS = tuple(f"worker_{i}" for i in range(20))
WARM_UP = 1  # kickoffs


async def times(mode: Mode | None, is_kept: bool, runs: int, say: Say = small) -> list[float]:
    """How long each task took, in microseconds, after a kickoff to warm up."""
    moments: list[float] = []
    team, taken = line(moments, say), []
    with monitored(team, mode, is_kept) as team:
        for run in range(WARM_UP + runs):
            moments.clear()
            await team.akickoff()
            if run >= WARM_UP:
                taken += between(moments)
    return taken


def line(moments: list[float], say: Say) -> Any:
    from tests.adapters.crewai_teams import agent, answer, crew, task
    from tests.adapters.harness import Script

    speak = speaking(say)

    def reply(given: str, number: int) -> str:
        moments.append(time.process_time())  # CrewAI has threads of its own
        return answer(speak(len(moments)))

    tasks: list[Any] = []
    for name in AGENTS:
        tasks.append(task(TEXT, agent(Script(), name, reply), context=tasks[-1:]))
    return crew(*tasks)
