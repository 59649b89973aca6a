"""A run, from the call to the result: the agent at work, notes, tools, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

from llama_index.core.agent.react.types import ObservationReasoningStep
from llama_index.core.agent.workflow import AgentOutput
from llama_index.core.llms import ChatMessage
from workflows.errors import WorkflowCancelledByUser, WorkflowRuntimeError, WorkflowTimeoutError
from workflows.runtime.types.results import WaitingForEvent

from dig.adapters.base import (
    NOTE,
    CalledOffError,
    HookedCall,
    Session,
    ToolCalls,
    as_payload,
    inside,
)
from dig.errors import BudgetExceeded, BudgetStop

CALLED_OFF = CalledOffError("the run was cancelled")
"""The reason in a trace for a run whose caller wants no more of it."""

HANDOFF_TOOL = "handoff"
"""The tool of LlamaIndex that names the next agent."""

running: ContextVar[WatchedRun | None] = ContextVar("dig_llama_index_run", default=None)
"""The run that the running code belongs to."""


class WatchedRun:
    """A run of a workflow of agents, or of a single agent.

    Attributes:
        agent: The name of the agent at work.
    """

    def __init__(
        self, session: Session, agents: Mapping[str, tuple[Any, Callable[..., Any]]], entry: str,
        question: Any, *, tools: bool,
    ) -> None:  # fmt: skip
        """Report the call of a run.

        Args:
            session: The session of the team.
            agents: The agents of the team, by name, each with its own `take_step`.
            entry: The agent that begins.
            question: The words of the user.
            tools: Whether the calls of tools are events.
        """
        self._team, self._agents, self.agent = session, agents, entry
        self._call = HookedCall(session, entry, question, limits=(WorkflowTimeoutError,))
        self._session: Session = self._call.guard.session
        self._tools, self._shows_tools = ToolCalls(self._session), tools
        self._has_begun = self._is_last = self._is_over = False
        self._repeated = 0
        self._output: AgentOutput | None = None
        self._bounced: AgentOutput | None = None
        self._waiting: list[tuple[str, str]] = []  # tools that wait for an event from outside

    def is_of(self, session: Session) -> bool:
        """Whether the run belongs to a session, and goes on."""
        return self._team is session and not self._is_over

    async def take_step(
        self, name: str, context: Any, messages: list[Any], tools: Any, memory: Any
    ) -> Any:
        """Take a step of an agent, the first or a further step of a turn."""
        # At none left, LlamaIndex takes no answer.
        steps_left = await context.store.get("max_iterations", default=0) - 1
        steps_left -= await context.store.get("num_iterations", default=0)
        await self._begin(name)
        agent, step = self._agents[self.agent]
        if self.agent != name:  # a limit of the budget: the entry agent hands back what there is
            await context.store.set("current_agent_name", self.agent)
            is_instructed = bool(self._agents[name][0].system_prompt)
            instruction = ChatMessage(role="system", content=agent.system_prompt)
            messages = [instruction, *messages[is_instructed:]][not agent.system_prompt :]
        messages = await self._annotate(agent, context, messages)
        with inside(self._call.turn):
            try:
                output = await step(context, messages, () if self._is_last else tools, memory)
            except Exception as error:
                if self._bounced is None or isinstance(error, BudgetExceeded):
                    raise
                return await self._let_first_stand(error)
        usage = output.raw.get("usage") if isinstance(output.raw, Mapping) else None
        if isinstance(usage, Mapping):
            self._call.turn.spend({"model": output.raw.get("model"), **usage})
        return await self._conclude(output, steps_left)

    async def call_tool(
        self, original: Callable[..., Any], context: Any, tool: Any, arguments: Any
    ) -> Any:
        """Call a tool, inside the turn of the agent."""
        if not self._has_begun:  # of a conversation that was stored while this tool waited
            await self._begin(await context.store.get("current_agent_name", self.agent))
        turn, name, tools = self._call.turn, tool.metadata.get_name(), self._tools
        key, call = (name, repr(arguments)), object()
        if key in self._waiting:
            self._waiting.remove(key)
            self._session.guard.run(partial(turn.resumes, key=key), default=None)
        shows = self._shows_tools and name != HANDOFF_TOOL
        if shows:
            await tools.release(tools.call, tools.begin, call, turn, name, arguments)
        try:
            with inside(turn):
                output = await original(context, tool, arguments)
            if shows and not output.is_error:
                await tools.release(tools.complete, tools.receive, call, output.content)
        except BaseException as error:
            tools.fail(call, error)
            if isinstance(error, WaitingForEvent):
                question = as_payload(getattr(error.add, "waiter_event", None))
                self._waiting.append(key)
                self._session.guard.run(partial(turn.waits, question, key=key), default=None)
            raise
        if shows and output.is_error:
            tools.fail(call, output.exception or RuntimeError(output.content))
        return output

    def fail(self, error: BaseException) -> None:
        """End a run without an answer."""
        self._is_over = True
        self._tools.give_up(CALLED_OFF)
        self._call.fail(CALLED_OFF if isinstance(error, WorkflowCancelledByUser) else error)

    def end(self, task: Any) -> None:
        """End a run with the result or the error of the handler's task."""
        error = CALLED_OFF if task.cancelled() else task.exception()
        if self._is_over:
            return
        if error is not None:
            self.fail(error)
            return
        self._is_over, result = True, task.result().result
        self._call.answer_now(_text(result) if isinstance(result, AgentOutput) else result)

    async def _begin(self, name: str) -> None:
        """Begin the turn of an agent, or continue the turn while the budget lasts.

        Raises:
            WorkflowRuntimeError: The budget of a run within another one is used up.
            BudgetExceeded: That of a run from outside is, and its agent has had its last turn.
        """
        call = self._call
        if self._has_begun and name == self.agent:
            self._check_budget()
            return
        if self._has_begun:
            call.give_floor(name, *self._handoffs(name))
        elif name != self.agent:
            call.readdress(name)
        self._has_begun, self.agent = True, name
        try:
            await call.begin()
        except BudgetStop as stop:
            account = self._session.refuses(call.event)
            raise WorkflowRuntimeError(account.note if account else "") from stop
        if call.is_last:
            self.agent, self._is_last = call.agent, True

    def _handoffs(self, to: str) -> tuple[Any, list[Any]]:
        """The words for the next agent, and the words of dropped hand-overs."""
        output: Any = self._output
        payloads = [
            {"handoff": call.tool_kwargs.get("to_agent"), "said": _text(output),
             "with": call.tool_kwargs.get("reason")}
            for call in ((output and output.tool_calls) or ()) if call.tool_name == HANDOFF_TOOL
        ]  # fmt: skip
        payloads = [{key: text for key, text in each.items() if text} for each in payloads]
        mine = [payload for payload in payloads if payload.get("handoff") == to]
        dropped = [payload for payload in payloads if payload.get("handoff") != to]
        return (mine or [{"handoff": to}])[-1], dropped

    def _check_budget(self) -> None:
        if self._session.budget is None or self._is_last:
            return
        account = self._call.refused()
        if account is not None:
            error = WorkflowRuntimeError(account.note)
            if not self._call.hands_back(error):
                raise error
            self._is_last = True

    async def _annotate(self, agent: Any, context: Any, messages: list[Any]) -> list[Any]:
        """Put new notes at the end of a conversation."""
        # After an answer that came back LlamaIndex repeats the question before the notes, and both
        # before the answer, since the scratchpad of an agent comes after all messages.
        if self._repeated:
            messages, self._repeated = messages[: -self._repeated - 1], 0
        fresh = self._call.new_notes()
        if key := getattr(agent, "reasoning_key", ""):
            steps = [ObservationReasoningStep(observation=note) for note in fresh]
        # After a message of the user an agent would have to make its first choice again.
        elif getattr(agent, "initial_tool_choice", None) is None:
            key, steps = getattr(agent, "scratchpad_key", ""), _from_user(fresh)
        if not key:
            return [*messages, *_from_user(map(NOTE.format, self._call.turn.notes))]
        if fresh:
            await context.store.set(key, [*await context.store.get(key, default=[]), *steps])
        return messages

    async def _conclude(self, output: AgentOutput, steps_left: int) -> AgentOutput:
        """Hand over an answer, or try again with the notes beside a bounced answer."""
        call = self._call
        if output.tool_calls or output.retry_messages or steps_left < 1:
            if self._is_last and output.tool_calls:
                call.hands_back(WorkflowRuntimeError("the last turn was no answer"))
            if self._bounced is not None and steps_left <= 1:
                return await self._let_first_stand(WorkflowRuntimeError("no steps are left"))
            if steps_left < 1:
                call.limits = (*call.limits, WorkflowRuntimeError)
            self._output = output
            return output
        call.may_bounce = steps_left > 1 and not self._is_last
        notes = await call.answer_or_go_on(_text(output))
        if notes:
            self._bounced = output.model_copy()
            output.retry_messages, self._repeated = _from_user(notes), len(notes)
            call.shown_notes -= len(notes)  # the next step puts them into the scratchpad
        self._is_over = not notes
        return output

    async def _let_first_stand(self, error: Exception) -> Any:
        """Answer with the bounced answer, for lack of a better answer."""
        self._call.keep_answer(error)
        self._is_over = True
        await self._call.answer(_text(self._bounced))
        return self._bounced


def _text(output: Any) -> str:
    """The words of an agent; of a ReAct agent the answer alone, without thoughts."""
    text = output.response.content or ""
    return text.partition("Answer:")[2].strip() or text


def _from_user(notes: Iterable[str]) -> list[ChatMessage]:
    """Messages of the user, since notes quote agents."""
    return [ChatMessage(role="user", content=note) for note in notes]
