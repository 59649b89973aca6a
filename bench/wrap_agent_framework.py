"""What wrapping adds to a superstep of agent-framework, beside the superstep, in CPU time.

Twenty executors pass a count round a ring and do nothing else, so a message here is nothing but
its cost: a real one takes a model's seconds. Their edges have no conditions.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

import dig
from dig.adapters import Mode

from .measure import Table
from .wrapped import TEXT, compared

WORKERS = 20
WARM_UP = 50


def wrapping(quick: bool) -> Table:
    """Time from one executor to the next: a message, and the framework's superstep."""
    steps, rounds = (500, 2) if quick else (2_000, 5)
    return compared(
        f"A message between wrapped executors of agent-framework, {steps} steps, µs of CPU time",
        "workflow", partial(_times, steps=steps // rounds), rounds,
        "seven detectors; a bare step is the framework's own cost of a message",
    )  # fmt: skip


async def _times(mode: Mode | None, is_kept: bool, steps: int) -> list[float]:
    """How long each step took, in microseconds, after some to warm up."""
    moments: list[float] = []
    workflow = _ring(steps + WARM_UP, moments)
    with TemporaryDirectory() as folder:
        if mode is not None:
            workflow = dig.wrap(workflow, mode=mode, journal=folder if is_kept else None)
        await workflow.run(f"0: {TEXT}")
        dig.unwrap(workflow)
    return [(after - before) * 1e6 for before, after in pairwise(moments)][WARM_UP:]


def _ring(turns: int, moments: list[float]) -> Any:
    from agent_framework import FunctionExecutor, WorkflowBuilder, WorkflowContext

    async def work(text: str, ctx: WorkflowContext[str, str]) -> None:
        moments.append(time.thread_time())
        turn = int(text.partition(":")[0])
        if turn < turns:
            await ctx.send_message(f"{turn + 1}: {TEXT}")
        else:
            await ctx.yield_output(text)

    work.__annotations__ = {"text": str, "ctx": WorkflowContext[str, str]}  # it looks for types
    ring = [FunctionExecutor(work, id=f"worker-{i}") for i in range(WORKERS)]
    built = WorkflowBuilder(start_executor=ring[0], max_iterations=2 * turns)
    for one, following in pairwise([*ring, ring[0]]):
        built.add_edge(one, following)
    return built.build()
