"""What wrapping adds to a message of AG2, beside the message, in CPU time of its thread.

Two agents talk to each other, with models that answer at once, so a message here is nothing but
its cost: a real one takes a model's seconds. AG2 reads a channel from its beginning for each turn,
so channels are kept short.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import anyio

from dig.adapters import Mode

from .wrapped import TEXT, Say, between, monitored, small, speaking

LENGTH = 100
WARM_UP = 10


async def times(
    mode: Mode | None, is_kept: bool, length: int = LENGTH, say: Say = small
) -> list[float]:
    """How long each message took, in microseconds, after some to warm up."""
    from ag2.knowledge import MemoryKnowledgeStore
    from ag2.network import Hub

    moments: list[float] = []
    most, speak = length + WARM_UP, speaking(say)
    done = anyio.Event()
    hub = await Hub.open(MemoryKnowledgeStore())
    with monitored(hub, mode, is_kept):
        first = await hub.register(_agent("ann", moments, done, most, speak))
        await hub.register(_agent("bob", moments, done, most, speak))
        channel = await first.open(type="conversation", target="bob")
        await channel.send(TEXT)
        await done.wait()
        await hub.close()
    return between(moments)[WARM_UP:]


def _agent(
    name: str, moments: list[float], done: anyio.Event, most: int, speak: Callable[[int], Any]
) -> Any:
    from ag2 import Agent
    from ag2.config import LLMClient, ModelConfig
    from ag2.events import ModelMessage, ModelResponse

    class Model(ModelConfig, LLMClient):  # type: ignore[misc]
        provider, model = None, "none"

        def copy(self) -> Any:
            return self

        def create(self) -> Any:
            return self

        def create_files_client(self) -> Any:
            raise NotImplementedError

        async def __call__(self, messages: Any, context: Any, **more: Any) -> Any:
            moments.append(time.thread_time())
            if len(moments) < most:
                return ModelResponse(ModelMessage(speak(len(moments))))
            done.set()
            return ModelResponse(ModelMessage(""))

    return Agent(name, config=Model())
