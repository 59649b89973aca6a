"""`ModelAgent`: an agent that a language model decides for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from dig.errors import ModelError
from dig.runtime.agents import Decision, View

from .model import Messages, Model
from .tools import Toolbox
from .wire import WireDecision, check

Brief = Callable[[View], Messages]
"""Tells a model what lies in front of an agent."""


@dataclass(frozen=True)
class ModelAgent:
    """Asks a model what to do, and calls the tools that it wants, in one activation.

    It remembers nothing: all that it knows is in its view.

    Attributes:
        model: The model; one for the whole team.
        brief: What it is told.
        most_rounds: How often it may call tools; then it has to decide.
    """

    model: Model
    brief: Brief
    most_rounds: int = 8

    async def act(self, view: View) -> Decision:
        """Decide about the events in front of it.

        Raises:
            ModelError: No usable decision came; the events stay where they are.
            StopRunError: None will ever come, for nobody of the team.
        """
        tools, talk = Toolbox(view.tools), list(self.brief(view))
        for left in reversed(range(self.most_rounds + 1)):
            reply = await self.model.ask(
                talk,
                WireDecision,
                check=partial(check, view),
                tools=tools.described,
                may_call=left > 0,
                usage=view.usage,
                who=view.agent,
            )
            if reply.parsed is not None:
                return reply.parsed.decision()
            view.usage["tool_calls"] = view.usage.get("tool_calls", 0) + len(reply.calls)
            results: list[Any] = [
                {"role": "tool", "tool_call_id": call.id, "content": await tools.call(call)}
                for call in reply.calls
            ]
            talk += [reply.message, *results]
        raise ModelError(f"the model kept calling tools, {self.most_rounds + 1} times in a row")
