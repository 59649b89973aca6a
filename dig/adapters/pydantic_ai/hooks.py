"""The hooks of a monitored run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from pydantic_ai import DeferredToolRequests, ModelRequestNode, UsageLimitExceeded
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.result import FinalResult
from pydantic_graph import End

from dig.adapters.base import CalledOffError, HookedCall, Session, ToolCalls
from dig.errors import BudgetExceeded, BudgetStop

LIMITS = (BudgetExceeded, BudgetStop, UsageLimitExceeded)
"""The errors that a limit of the budget may end an inner run with."""

NEVER_TOLD = CalledOffError("Pydantic AI has not told what came of this call")
"""The reason in a trace for a tool that the run has left behind."""


class RunHooks(AbstractCapability[Any]):  # type: ignore[misc]
    """Reports a run to the monitor, and brings the agent notes."""

    def __init__(self, call: HookedCall, *, tools: bool) -> None:
        """Begin with the agent's turn.

        Args:
            call: The call of the agent.
            tools: Whether the calls of function tools are events.
        """
        self._session: Session = call.guard.session
        self._call, self._shows_tools = call, tools
        self._tools = ToolCalls(self._session)
        self._is_answered = self._is_last = False
        self._bounced: FinalResult[Any] | None = None

    def get_ordering(self) -> CapabilityOrdering:
        """Outermost: all other capabilities have changed the answer before."""
        return CapabilityOrdering(position="outermost")

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Check the budget, and put new notes into the conversation."""
        self._check_budget()
        if notes := _from_user(self._call.new_notes()):
            last = request_context.messages[-1]
            annotated = replace(last, parts=[*last.parts, *notes])
            # The conversation is kept, so that a note stands in it once.
            for messages in (ctx.messages, request_context.messages):
                if messages and messages[-1] is last:
                    messages[-1] = annotated
        return request_context

    async def after_model_request(
        self, ctx: Any, *, request_context: Any, response: ModelResponse
    ) -> ModelResponse:
        """Count the usage of a model."""
        if self._session.budget is not None:
            usage = response.usage
            self._call.turn.spend({
                "model": response.model_name, "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens, "cached_tokens": usage.cache_read_tokens,
            })  # fmt: skip
        return response

    async def wrap_tool_execute(
        self, ctx: Any, *, call: ToolCallPart, tool_def: Any, args: Any,
        handler: Callable[[Any], Awaitable[Any]],
    ) -> Any:  # fmt: skip
        """Report a function tool; an error at a limit becomes a note to the agent."""
        try:
            if not self._shows_tools:
                return await handler(args)
            return await self._show_tool(call, args, handler)
        except LIMITS as error:
            if not (self._is_last or self._call.hands_back(error)):
                raise
            self._is_last = True
            return self._call.turn.notes[-1]

    async def after_node_run(self, ctx: Any, *, node: Any, result: Any) -> Any:
        """Hand over the answer, or go on with the notes if the answer has come back."""
        if not isinstance(result, End) or self._is_answered:
            return result
        limit = None if ctx.usage_limits is None else ctx.usage_limits.request_limit
        has_requests = limit is None or ctx.usage.requests < limit
        asks = isinstance(result.data.output, DeferredToolRequests)
        self._call.may_bounce &= has_requests and not asks
        notes = await self.hand_over(result.data.output)
        if not notes:
            return result
        self._bounced = result.data
        return ModelRequestNode(ModelRequest(parts=_from_user(notes)))

    async def on_node_run_error(self, ctx: Any, *, node: Any, error: Exception) -> Any:
        """Let the first answer stand if the agent cannot give another one."""
        if self._bounced is None or isinstance(error, LIMITS):
            raise error
        self._call.keep_answer(error)
        return End(self._bounced)

    async def hand_over(self, output: Any) -> list[str]:
        """Hand over the answer, once; returns new notes if the answer has come back."""
        if self._is_answered:
            return []
        self._tools.give_up(NEVER_TOLD)
        notes = await self._call.answer_or_go_on(output)
        self._is_answered = not notes
        return notes

    async def _show_tool(
        self, call: ToolCallPart, args: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        tools, key = self._tools, call.tool_call_id
        await tools.release(tools.call, tools.begin, key, self._call.turn, call.tool_name, args)
        try:
            result = await handler(args)
            await tools.release(tools.complete, tools.receive, key, result)
        except BaseException as error:
            tools.fail(key, error)
            raise
        return result

    def _check_budget(self) -> None:
        """Refuse a request to a model at a limit, but the last one of the entry agent.

        Raises:
            BudgetExceeded: The entry agent has had its last request.
            UsageLimitExceeded: The agent was asked by another one.
        """
        if self._session.budget is None or self._is_last:
            self._is_last = False
            return
        account = self._call.refused()
        if account is not None:
            error = UsageLimitExceeded(account.note)
            if not self._call.hands_back(error):
                raise error


def _from_user(notes: list[str]) -> list[UserPromptPart]:
    """Notes as parts of the user: notes quote agents."""
    return [UserPromptPart(note) for note in notes]
