"""Runs of a wrapped team: of a `Runner`, and of the agents inside.

The methods of ADK's classes are replaced, since ADK copies agents, and makes a runner of its own
for each agent that is a tool.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, nullcontext
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.agents.invocation_context import InvocationContext, LlmCallsLimitExceededError
from google.adk.events import Event
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.tools import FunctionTool
from google.adk.workflow import BaseNode
from google.genai import types

from dig.adapters.base import CalledOffError, HookedCall, Patches, Session, ToolCalls, inside
from dig.errors import BudgetExceeded, BudgetStop, SettingsError

from .words import is_agent, is_end, text_of, words_of

Events = AsyncGenerator[Event, None]

HANDS_OVER = "transfer_to_agent"
"""The name of the tool that hands over to another agent."""

LIMITS = (LlmCallsLimitExceededError, BudgetExceeded)
"""The errors that a limit may end an inner run with."""

NEVER_TOLD = CalledOffError("ADK has not told what came of this call")
"""The reason in a trace for a tool or agent that a run has left behind."""

RUN: ContextVar[Invocation | None] = ContextVar("dig_google_adk_run", default=None)
"""The run of the running code."""


@dataclass(frozen=True, eq=False)
class WatchedTeam:
    """A wrapped team; see `install`.

    Attributes:
        session: The session of the team.
        nodes: The agents and workflows.
        tools: Whether the calls of function tools are events.
    """

    session: Session
    nodes: Sequence[BaseNode]
    tools: bool = False


class Invocation:
    """A run of a `Runner`, with the runs of agents inside.

    Attributes:
        team: The team.
        waiting: The calls that an agent, by its name, will go on with.
        asking: The calls of the agents that have asked, by the name of the tool or agent.
        words: The last words of an agent.
    """

    def __init__(self, team: WatchedTeam) -> None:
        self.team = team
        self.words: str | None = None
        self.waiting: dict[str, HookedCall] = {}
        self.asking: dict[str, HookedCall] = {}

    async def events(self, items: Events, call: HookedCall | None) -> Events:
        """Monitor the events of a runner, from the first agent to the last.

        Args:
            items: The events.
            call: The call of a root that only runs other agents; ``None``: agents are called.
        """
        with nullcontext() if call is None else call:
            try:
                if call is not None:
                    await call.begin()
                async with aclosing(items):
                    steps = aiter(items)  # what an instrumentation gives is no iterator itself
                    while (event := await self._next(steps, call)) is not None:
                        yield event
                self._leave(NEVER_TOLD)
            except BaseException as error:
                self._leave(error)
                if call is None or not call.hands_back(error):
                    raise
            if call is not None:
                await call.answer(self.words)

    async def _next(self, steps: AsyncIterator[Event], call: HookedCall | None) -> Event | None:
        token = RUN.set(self)
        try:
            with nullcontext() if call is None else inside(call.turn):
                return await anext(steps, None)
        finally:
            RUN.reset(token)

    def _leave(self, error: BaseException) -> None:
        """Fail all waiting calls."""
        while self.waiting:
            self.waiting.popitem()[1].fail(error)

    def call_of(self, agent: BaseAgent, ctx: InvocationContext) -> HookedCall:
        """The waiting call of an agent, or a new call."""
        if (call := self.waiting.pop(agent.name, None)) is not None:
            return call
        # ADK begins a task between two steps of the agent that has given it.
        asker = self.asking.get(agent.name)
        with nullcontext() if asker is None or not asker.turn.is_open else inside(asker.turn):
            return HookedCall(self.team.session, agent.name, question_of(ctx), limits=LIMITS)


def question_of(ctx: InvocationContext) -> Any:
    """The question to an agent: the latest words visible to the agent."""
    branch, events = f"{ctx.branch}.", reversed(ctx.session.events)  # `a.b` lies not within `a.b2`
    visible = (
        it for it in events if not (ctx.branch and it.branch) or branch.startswith(f"{it.branch}.")
    )
    return next(filter(None, (words_of(it.content) for it in visible)), words_of(ctx.user_content))


class AgentPlugin(BasePlugin):  # type: ignore[misc]
    """A run of an agent, and the plugin of the run."""

    def __init__(self, run: Invocation, agent: BaseAgent) -> None:
        """Begin before the call is reported.

        Args:
            run: The run of the runner.
            agent: The agent.
        """
        super().__init__(name="dig")
        self._run, self._agent = run, agent
        self._spoken, self._bounced = list[Event](), Event()
        self._added: list[tuple[int, types.Content]] = []  # with the place in the conversation
        self._length = 0  # of the conversation
        self._is_over = self._is_last = False  # answered, or handed over; at its last request

    async def events(self, original: Callable[..., Events], ctx: InvocationContext) -> Events:
        """Monitor the events of the agent, each before the reader gets the event.

        Args:
            original: `BaseAgent.run_async`.
            ctx: The context of the run.
        """
        call = self._call = self._run.call_of(self._agent, ctx)
        self._session: Session = call.guard.session
        self._tools = ToolCalls(self._session)
        call.shown_notes = 0  # notes stand in the requests of one run of the agent
        manager = copy(ctx.plugin_manager)
        manager.plugins = [it for it in manager.plugins if not isinstance(it, AgentPlugin)] + [self]
        ctx = ctx.model_copy(update={"plugin_manager": manager})
        while True:
            try:
                if not (call.turn.is_open and call.turn.instance):
                    await self._begin()
                async with aclosing(original(self._agent, ctx)) as items:
                    steps = aiter(items)
                    while (event := await self._next(steps)) is not None:
                        if await self._goes_back(event):
                            break
                        yield event
                    else:
                        if not self._is_over:  # there was no last word
                            call.may_bounce = False
                            last = Event(content=types.ModelContent(self._run.words or ""))
                            await self._answer(self._spoken[-1] if self._spoken else last)
                        return
            except GeneratorExit:
                if not self._is_over:  # the agent may go on later: a task was given away
                    self._run.waiting[self._agent.name] = call
                raise
            except BaseException as error:
                if self._is_over:
                    raise
                with call:
                    if call.hands_back(error):
                        self._is_last = True
                        continue
                    if isinstance(error, BudgetStop):
                        raise LlmCallsLimitExceededError("the budget is used up") from None
                    if isinstance(error.__cause__, BudgetExceeded):  # ADK wraps errors of plugins
                        raise error.__cause__ from None
                    if not (self._bounced.content and isinstance(error, Exception)):
                        raise
                call.keep_answer(error)
                break
        await self._answer(self._bounced)
        yield self._bounced

    # --- what the agent says ---

    async def _begin(self) -> None:
        await self._call.begin()
        if self._call.is_last:  # the entry agent works in place of this one
            nodes, self._is_last = self._run.team.nodes, True
            self._agent = next(node for node in nodes if node.name == self._call.agent)

    async def _next(self, steps: AsyncIterator[Event]) -> Event | None:
        with inside(self._call.turn):
            return await anext(steps, None)

    async def _goes_back(self, event: Event) -> bool:
        """Report an event; returns whether an answer has come back."""
        if self._is_over or event.author != self._agent.name:
            return False
        if event.partial:
            self._call.may_bounce = False
            return False
        self._spoken.append(event)
        names = (call.name for call in event.get_function_calls())
        self._run.asking.update(dict.fromkeys(names, self._call))
        to = event.actions.transfer_to_agent
        if to and self._agent.root_agent.find_agent(to):
            self._hand_over(to, getattr(event.actions, "transfer_reason", None))
        elif is_end(event):
            return await self._answer(event)
        return False

    async def _answer(self, event: Event) -> bool:
        """Hand over the answer; returns whether the answer has come back."""
        call, words = self._call, words_of(event.content)
        self._tools.give_up(NEVER_TOLD)
        if event.error_code and not words:
            self._is_over = True
            call.fail(RuntimeError(f"{event.error_code}: {event.error_message}"))
            return False
        if event.long_running_tool_ids:
            words, call.may_bounce = {"$asks": words}, False
        elif not event.is_final_response() and len(self._spoken) > 1:
            words = words_of(self._spoken[-2].content)  # what the task's last call says
        if isinstance(words, str) and words:
            self._run.words = words
        if notes := await call.answer_or_go_on(words):
            self._bounced = event
            self._add(event.content, *_from_user(notes))
        self._is_over = not notes
        return bool(notes)

    def _hand_over(self, to: str, reason: str | None) -> None:
        self._tools.give_up(NEVER_TOLD)
        text = "\n".join(filter(None, (text_of(event.content) for event in self._spoken)))
        parts = {"said": text, "with": reason}
        payload = {"handoff": to, **{name: text for name, text in parts.items() if text}}
        self._call.give_floor(to, payload, silent=len(payload) == 1)
        self._run.waiting[to], self._is_over = self._call, True

    # --- as a plugin ---

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Check the budget, and put notes into the conversation, for the model alone."""
        self._check_budget()
        contents = llm_request.contents
        self._length = len(contents)
        self._add(*_from_user(self._call.new_notes()))
        for place, content in reversed(self._added):
            contents.insert(place, content)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Count the usage of a model."""
        usage = llm_response.usage_metadata
        if self._session.budget is not None and usage and not llm_response.partial:
            self._call.turn.spend({
                "model": llm_response.model_version,
                "input_tokens": usage.prompt_token_count or 0,
                "output_tokens": usage.candidates_token_count or 0,
                "cached_tokens": usage.cached_content_token_count or 0,
            })  # fmt: skip

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        """Begin a function tool after the release of the call."""
        if self._run.team.tools and isinstance(tool, FunctionTool) and tool.name != HANDS_OVER:
            tools, key = self._tools, tool_context.function_call_id
            await tools.release(tools.call, tools.begin, key, self._call.turn, tool.name, tool_args)

    async def after_tool_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any
    ) -> None:
        """Hand over the result of a function tool, once released."""
        tools, key = self._tools, tool_context.function_call_id
        await tools.release(tools.complete, tools.receive, key, result)

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception
    ) -> dict[str, Any] | None:
        """Report the error of a tool; an error at a limit becomes a note to the agent."""
        self._tools.fail(tool_context.function_call_id, error)
        if not isinstance(error, LIMITS) or not (self._is_last or self._call.hands_back(error)):
            return None
        self._is_last = True
        return {"error": self._call.turn.notes[-1]}

    def _add(self, *contents: Any) -> None:
        """Add messages to the present end of the conversation."""
        self._added += [(self._length, content) for content in contents]

    def _check_budget(self) -> None:
        """Refuse a request to a model at a limit, except the entry agent's last.

        Raises:
            LlmCallsLimitExceededError: The budget is used up.
        """
        is_free, self._is_last = self._session.budget is None or self._is_last, False
        if not is_free and (account := self._call.refused()) is not None:
            raise LlmCallsLimitExceededError(account.note)


def _from_user(notes: list[str]) -> list[types.UserContent]:
    """Notes as messages of the user: notes quote agents."""
    return [types.UserContent(note) for note in notes]


# --- what is replaced ---

TEAMS: list[WatchedTeam] = []
"""The wrapped teams."""

PATCHES: list[Patches] = []
"""The replaced methods, while there is a team."""


def install(team: WatchedTeam) -> None:
    """Have the runs of a team monitored from now on."""
    TEAMS.append(team)
    _patch()


def remove(team: WatchedTeam) -> None:
    """Stop monitoring a team; the last removal restores the classes."""
    TEAMS[:] = [other for other in TEAMS if other is not team]
    _patch()


def _patch() -> None:
    """Have the methods replaced exactly while there is a team."""
    while PATCHES:
        PATCHES.pop().restore()
    if TEAMS:
        PATCHES.append(patches := Patches())
        patches.patch(Runner, "run_async", _run_team)
        patches.patch(Runner, "run_live", _refuse)
        patches.patch(BaseAgent, "run_async", _run_agent)
        if instrumentation := sys.modules.get("opentelemetry.instrumentation.instrumentor"):
            patches.patch(instrumentation.BaseInstrumentor, "uninstrument", _patch_anew)


def _patch_anew(original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Take back an instrumentation, and replace the methods anew: it has put back older ones."""
    try:
        return original(*args, **options)
    finally:
        _patch()


def _team_of(runner: Runner) -> WatchedTeam | None:
    """The wrapped team with a runner's agent, else the team of the running code."""
    run = RUN.get()
    teams = [team for team in TEAMS if any(runner.agent is node for node in team.nodes)]
    teams += [run.team] if run is not None and run.team in TEAMS else []
    return teams[0] if teams else None


def _run_team(original: Callable[..., Events], runner: Runner, **options: Any) -> Events:
    team, root = _team_of(runner), runner.agent
    items = original(runner, **options)
    if team is None:
        return items
    call, message = None, options.get("new_message")
    if not is_agent(root):
        payload = words_of(message) if message else {"$resumed": root.name}
        call = HookedCall(team.session, root.name, payload, may_bounce=False, limits=LIMITS)
    return Invocation(team).events(items, call)


def _run_agent(original: Callable[..., Events], agent: BaseAgent, ctx: Any) -> Events:
    run = RUN.get()
    if run is None or run.team not in TEAMS or not is_agent(agent):
        return original(agent, ctx)
    return AgentPlugin(run, agent).events(original, ctx)


def _refuse(original: Callable[..., Events], runner: Runner, *args: Any, **options: Any) -> Events:
    if _team_of(runner) is not None:
        raise SettingsError(
            "Runner.run_live is not watched: ask a wrapped team by run_async, or unwrap it before"
        )
    return original(runner, *args, **options)
