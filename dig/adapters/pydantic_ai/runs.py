"""Runs of wrapped agents: all pass `Agent.iter`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from pydantic_ai import Agent, AgentRun, RunContext, UsageLimitExceeded
from pydantic_ai.capabilities import AbstractCapability

from dig.adapters.base import (
    CalledOffError,
    HookedCall,
    Patches,
    Session,
    agents_by_name,
    as_payload,
    inside,
    members_by_name,
    need_attributes,
)
from dig.errors import SettingsError

from .hooks import RunHooks

LEFT = CalledOffError("the run was left before its end")
"""The reason in a trace for a run whose caller wants no more of it."""

HOOKS = (
    "before_model_request", "after_model_request", "wrap_tool_execute", "after_node_run",
    "on_node_run_error", "get_ordering",
)  # fmt: skip


class Streamed(AbstractCapability[Any]):  # type: ignore[misc]
    """Marks a run with a result before the end of the model's words."""


STREAMED = Streamed()


def agents_of(team: Any) -> dict[str, Agent[Any, Any]]:
    """A team's agents by name in the trace.

    Raises:
        SettingsError: An object is no agent, or Pydantic AI is put together in another way.
    """
    need_attributes("Pydantic AI", (Agent,), ("iter", "run_stream"))
    need_attributes("Pydantic AI", (AbstractCapability,), HOOKS)
    need_attributes("Pydantic AI", (RunContext,), ("messages", "usage", "usage_limits"))
    named = members_by_name(team, lambda agent: getattr(agent, "name", None) or "agent")
    for _, agent in named:
        if not isinstance(agent, Agent):
            raise SettingsError(
                f"{type(agent).__name__} is no pydantic_ai.Agent; wrap the agent that it runs"
            )
    return agents_by_name(named)


class WatchedAgents:
    """A wrapped team.

    Attributes:
        restore: Gives the agents their own methods back.
    """

    def __init__(
        self, session: Session, agents: Mapping[str, Agent[Any, Any]], *, tools: bool
    ) -> None:
        """Have the runs of the agents monitored from now on.

        Args:
            session: The session of the team.
            agents: The agents, by name in the trace.
            tools: Whether the calls of function tools are events.
        """
        self._session, self._tools = session, tools
        patches = Patches()
        self.restore = patches.restore
        for name, agent in agents.items():
            patches.patch(agent, "iter", self._iter, name)
            patches.patch(agent, "run_stream", self._run_stream)

    def _run_stream(
        self, original: Callable[..., Any], prompt: Any = None, **options: Any
    ) -> AbstractAsyncContextManager[Any]:
        capabilities = [*(options.pop("capabilities", None) or ()), STREAMED]
        stream: AbstractAsyncContextManager[Any]
        stream = original(prompt, **options, capabilities=capabilities)
        return stream

    @asynccontextmanager
    async def _iter(
        self, original: Callable[..., Any], name: str, prompt: Any = None, **options: Any
    ) -> AsyncIterator[AgentRun[Any, Any]]:
        """Monitor a run, from the call to the result."""
        capabilities = [*(options.pop("capabilities", None) or ())]
        is_streamed = STREAMED in capabilities
        if is_streamed:
            capabilities.remove(STREAMED)
        call = HookedCall(
            self._session, name, as_payload(prompt), may_bounce=not is_streamed,
            limits=(UsageLimitExceeded,),
        )  # fmt: skip
        with call:
            hooks = RunHooks(call, tools=self._tools)
            with inside(await call.begin()):
                async with original(prompt, **options, capabilities=[hooks, *capabilities]) as run:
                    yield run
            if run.result is None:
                call.fail(LEFT)
            else:
                await hooks.hand_over(run.result.output)
