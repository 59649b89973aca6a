"""What wrapping adds to a handoff between OpenAI agents, beside it, in CPU time of its thread.

Twenty agents hand over round a ring, with a few words, and do nothing else, so a message here is
nothing but its cost: a real one takes a model's seconds.
"""

from __future__ import annotations

import time
from typing import Any

from dig.adapters import Mode

from .wrapped import TEXT, Say, between, monitored, small, speaking

AGENTS = tuple(f"worker_{i}" for i in range(20))
WARM_UP = 2  # runs


async def times(mode: Mode | None, is_kept: bool, runs: int, say: Say = small) -> list[float]:
    """How long each handoff took, in microseconds, after some runs to warm up."""
    from agents import Runner, set_tracing_disabled

    set_tracing_disabled(True)
    moments: list[float] = []
    team, taken = ring(moments, say), []
    with monitored(team, mode, is_kept) as team:
        for run in range(WARM_UP + runs):
            moments.clear()
            await Runner.run(team, TEXT, max_turns=len(AGENTS))
            if run >= WARM_UP:
                taken += between(moments)
    return taken


def ring(moments: list[float], say: Say) -> Any:
    from agents import Agent, Model, ModelResponse, Usage
    from agents.testing import assistant_message, function_call

    class Clerk(Model):  # type: ignore[misc]
        """Says a few words, and hands over to the next agent, if there is one."""

        def __init__(self, to: str | None) -> None:
            self.to = to

        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            moments.append(time.thread_time())
            said = [assistant_message(speak(len(moments)))]
            if self.to is not None:
                said.append(function_call(f"transfer_to_{self.to}", {}, call_id=self.to))
            return ModelResponse(output=said, usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    speak = speaking(say)
    further: list[Any] = []
    for name in reversed(AGENTS):
        to = further[0].name if further else None
        further = [Agent(name=name, model=Clerk(to), handoffs=further)]
    return further[0]
