"""What wrapping adds to a call between agents, beside the bare call, in CPU time of its thread.

A caller asks one of twenty agents after the other, each of which answers at once. So a message
here is nothing but its cost: a real one takes a model's seconds.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from dig.adapters import Mode

from .wrapped import TEXT, Say, monitored, small

WORKERS = tuple(f"worker-{i}" for i in range(20))
WARM_UP = 200

Team = dict[str, Callable[[Any], Awaitable[Any]]]


async def times(mode: Mode | None, is_kept: bool, calls: int, say: Say = small) -> list[float]:
    """How long each call took, in microseconds, after some to warm up."""
    team, taken = _team(calls + WARM_UP, say)
    with monitored(team, mode, is_kept):
        await team["boss"](TEXT)
    return taken[WARM_UP:]


def _team(calls: int, say: Say) -> tuple[Team, list[float]]:
    team: Team = {}
    taken: list[float] = []

    async def boss(said: Any) -> None:
        for i in range(calls):
            worker, said = team[WORKERS[i % len(WORKERS)]], say(i, said)
            begin = time.thread_time()
            said = await worker(said)
            taken.append((time.thread_time() - begin) * 1e6)

    async def worker(task: str) -> str:
        return task

    team.update({"boss": boss, **dict.fromkeys(WORKERS, worker)})
    return team, taken
