"""What wrapping adds to a message of AutoGen, beside the message, in CPU time of its thread.

Two agents of a chat speak in turn, and two agents of a runtime ask each other, and do nothing
else, so a message here is nothing but its cost: a real one takes a model's seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from dig.adapters import Mode

from .wrapped import TEXT, Say, between, monitored, small

WARM_UP = 20


@dataclass
class Question:
    said: Any


async def chat(mode: Mode | None, is_kept: bool, turns: int, say: Say = small) -> list[float]:
    """How long each turn took, in microseconds, after some to warm up."""
    from autogen_agentchat.teams import RoundRobinGroupChat

    moments: list[float] = []
    agents = [_participant(name, moments, say) for name in ("ann", "bob")]
    team = RoundRobinGroupChat(agents, max_turns=turns + WARM_UP)
    with monitored(team, mode, is_kept):
        await team.run(task=TEXT)
    return between(moments)[WARM_UP:]


def _participant(name: str, moments: list[float], say: Say) -> Any:
    from autogen_agentchat.agents import BaseChatAgent
    from autogen_agentchat.base import Response
    from autogen_agentchat.messages import TextMessage

    class Participant(BaseChatAgent):  # type: ignore[misc]
        produced_message_types = (TextMessage,)

        async def on_messages(self, messages: Any, cancellation_token: Any) -> Any:
            moments.append(time.thread_time())
            said = say(len(moments), messages[-1].content)
            return Response(chat_message=TextMessage(content=said, source=name))

        async def on_reset(self, cancellation_token: Any) -> None:
            moments.clear()

    return Participant(name, "Speaks.")


async def ask(mode: Mode | None, is_kept: bool, calls: int, say: Say = small) -> list[float]:
    """How long each call took, in microseconds, after some to warm up."""
    from autogen_core import AgentId, SingleThreadedAgentRuntime

    taken: list[float] = []
    runtime = SingleThreadedAgentRuntime()
    with monitored(runtime, mode, is_kept):
        await _register(runtime, calls + WARM_UP, taken, say)
        runtime.start()
        await runtime.send_message(Question(TEXT), AgentId("boss", "default"))
        await runtime.stop_when_idle()
    return taken[WARM_UP:]


async def _register(runtime: Any, calls: int, taken: list[float], say: Say) -> None:
    from autogen_core import AgentId, BaseAgent

    class Boss(BaseAgent):  # type: ignore[misc]
        async def on_message_impl(self, message: Any, ctx: Any) -> Any:
            answer = message
            for i in range(calls):
                question = Question(say(i, answer.said))
                begin = time.thread_time()
                answer = await self.send_message(question, AgentId("worker", "default"))
                taken.append((time.thread_time() - begin) * 1e6)
            return message

    class Worker(BaseAgent):  # type: ignore[misc]
        async def on_message_impl(self, message: Any, ctx: Any) -> Any:
            return message

    await Boss.register(runtime, "boss", lambda: Boss("Asks."))
    await Worker.register(runtime, "worker", lambda: Worker("Answers."))
