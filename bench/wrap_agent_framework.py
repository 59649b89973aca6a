"""What wrapping adds to a superstep of agent-framework, beside the superstep, in CPU time.

Twenty executors pass a count round a ring and do nothing else, so a message here is nothing but
its cost: a real one takes a model's seconds. Their edges have no conditions.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

from dig.adapters import Mode

from .wrapped import TEXT, Say, between, monitored, small

WORKERS = 20
WARM_UP = 50

State = dict[str, Any]


async def times(mode: Mode | None, is_kept: bool, steps: int, say: Say = small) -> list[float]:
    """How long each step took, in microseconds, after some to warm up."""
    moments: list[float] = []
    workflow = _ring(steps + WARM_UP, moments, say)
    with monitored(workflow, mode, is_kept) as workflow:
        await workflow.run({"turn": 0, "said": TEXT})
    return between(moments)[WARM_UP:]


def _ring(turns: int, moments: list[float], say: Say) -> Any:
    from agent_framework import FunctionExecutor, WorkflowBuilder, WorkflowContext

    async def work(state: State, ctx: WorkflowContext[State, State]) -> None:
        moments.append(time.thread_time())
        turn = state["turn"] + 1
        if turn <= turns:
            await ctx.send_message({"turn": turn, "said": say(turn, state["said"])})
        else:
            await ctx.yield_output(state)

    work.__annotations__ = {"state": State, "ctx": WorkflowContext[State, State]}  # it looks there
    ring = [FunctionExecutor(work, id=f"worker-{i}") for i in range(WORKERS)]
    built = WorkflowBuilder(start_executor=ring[0], max_iterations=2 * turns)
    for one, following in pairwise([*ring, ring[0]]):
        built.add_edge(one, following)
    return built.build()
