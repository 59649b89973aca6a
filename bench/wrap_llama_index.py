"""What wrapping adds to a handoff between LlamaIndex agents, beside it, in CPU time of its thread.

Twenty agents hand over round a ring, with a few words, and do nothing else, so a message here is
nothing but its cost: a real one takes a model's seconds.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from dig.adapters import Mode

from .wrapped import TEXT, Say, between, monitored, small, speaking

AGENTS = tuple(f"worker_{i}" for i in range(20))
WARM_UP = 2  # runs


async def times(mode: Mode | None, is_kept: bool, runs: int, say: Say = small) -> list[float]:
    """How long each handoff took, in microseconds, after some runs to warm up."""
    # LlamaIndex looks at all attributes of its agents, which are models of pydantic.
    warnings.simplefilter("ignore", DeprecationWarning)
    moments: list[float] = []
    team, taken = ring(moments, say), []
    with monitored(team, mode, is_kept) as team:
        for run in range(WARM_UP + runs):
            moments.clear()
            await team.run(user_msg=TEXT, max_iterations=2 * len(AGENTS))
            if run >= WARM_UP:
                taken += between(moments)
    return taken


def ring(moments: list[float], say: Say) -> Any:
    from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
    from llama_index.core.llms import ChatMessage, ChatResponse
    from llama_index.core.llms.llm import ToolSelection

    from tests.adapters.harness import Script
    from tests.adapters.llama_index_teams import Scripted

    class Clerk(Scripted):
        """Says a few words, and hands over to the next agent, if there is one."""

        async def _respond(self, messages: Any, choice: str = "") -> ChatResponse:
            moments.append(time.thread_time())
            given = {"to_agent": self._name, "reason": "It is yours."}
            call = ToolSelection(tool_id=self._name, tool_name="handoff", tool_kwargs=given)
            said = {"tool_calls": [call] if self._name else []}
            text = speak(len(moments))
            return ChatResponse(
                message=ChatMessage(role="assistant", content=text, additional_kwargs=said)
            )

    speak = speaking(say)
    agents = [
        FunctionAgent(
            name=name, description=name, llm=Clerk(Script(), to, ()), streaming=False,
            can_handoff_to=[to] if to else [],
        )
        for name, to in zip(AGENTS, (*AGENTS[1:], ""), strict=True)
    ]  # fmt: skip
    return AgentWorkflow(agents=agents, root_agent=AGENTS[0])
