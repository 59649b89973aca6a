"""Replace the SDK's default runner, and monitor the runs of wrapped teams.

`Runner` asks one object for every run, agents as tools included. This one is put in its place for
as long as a team is wrapped, and hands every run on; agents and tools are not touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import Any

import agents as sdk
from agents import run as sdk_run
from agents.lifecycle import RunHooksBase
from agents.tool_context import ToolContext

from dig.adapters.base import inside, need_attributes
from dig.errors import SettingsError

from .messages import AgentTeam, next_agent, usage_of
from .run import MonitoredRun, running

NEEDED: tuple[tuple[type, tuple[str, ...]], ...] = (
    (sdk_run.AgentRunner, ("run", "run_sync", "run_streamed")),
    (sdk.FunctionTool, ("_agent_instance",)),
    (sdk.Handoff, ("_agent_ref", "tool_name", "agent_name")),
    (sdk.RunConfig, ("call_model_input_filter",)),
    (sdk.RunHooks, ("on_agent_start", "on_agent_end", "on_handoff", "on_llm_start", "on_llm_end",
                    "on_tool_start", "on_tool_end")),
    (sdk.RunResult, ("interruptions", "last_agent", "raw_responses", "new_items",
                     "context_wrapper")),
    (sdk.RunResultStreaming, ("_stored_exception", "_cancel_mode", "run_loop_task")),
    (sdk.RunState, ("_current_agent", "_current_step", "_max_turns")),
)  # fmt: skip
"""Attributes of the SDK that are relied on, by class."""


def of(team: Any) -> dict[str, sdk.Agent[Any]]:
    """A team's agents by name in the trace, the given agent first.

    Of several that are called the same, in the order in which they are reached, the second is
    `NAME (2)`.

    Raises:
        SettingsError: The object is no agent, or the SDK is put together in another way.
    """
    for kind, names in NEEDED:
        need_attributes("Agents SDK", (kind,), names)
    if not isinstance(team, sdk.Agent):
        raise SettingsError(f"{type(team).__name__} is no agent that Runner.run would take")
    agents: dict[str, sdk.Agent[Any]] = {}
    waiting = [team]
    while waiting:
        agent = waiting.pop(0)
        if any(agent is other for other in agents.values()):
            continue
        name, number = agent.name, 1
        while name in agents:
            number += 1
            name = f"{agent.name} ({number})"
        agents[name] = agent
        waiting += filter(None, map(next_agent, agent.handoffs))
        tools = (tool for tool in agent.tools if isinstance(tool, sdk.FunctionTool))
        inner = (tool._agent_instance for tool in tools)
        waiting += (agent for agent in inner if isinstance(agent, sdk.Agent))
    return agents


TOOL_HOOKS = ("on_tool_start", "on_tool_end")
"""Hooks that nothing is added to, unless calls of tools are to be told."""


def monitored_options(options: Mapping[str, Any], run: MonitoredRun) -> dict[str, Any]:
    """The options of a run, with hooks that report, and a filter that adds notes."""
    changed = dict(options)
    hooks = options.get("hooks")
    if hooks is None or isinstance(hooks, RunHooksBase):
        changed["hooks"] = MonitoredHooks(run, hooks or sdk.RunHooks())
    if run.session.mode == "heal":
        config, key = options.get("run_config") or {}, "call_model_input_filter"
        if isinstance(config, dict):
            config = {**config, key: NotesFilter(run, config.get(key))}
        else:
            config = replace(config, **{key: NotesFilter(run, getattr(config, key))})
        changed["run_config"] = config
    return changed


class MonitoredHooks(sdk.RunHooks[Any]):  # type: ignore[misc]
    """The caller's hooks of a run, with reports to the session."""

    def __init__(self, run: MonitoredRun, hooks: RunHooksBase[Any, Any]) -> None:
        self._run = run
        self._hooks = hooks
        bare = () if run.team.tools else TOOL_HOOKS
        if run.session.budget is None:
            bare = (*bare, "on_llm_start")
        for name in ("on_agent_end", *bare):
            setattr(self, name, getattr(hooks, name))

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Begin an agent's turn, after the release of the input."""
        await self._run.wait_to_begin()
        await self._hooks.on_agent_start(context, agent)

    async def on_llm_start(
        self, context: Any, agent: sdk.Agent[Any], system_prompt: str | None, input_items: list[Any]
    ) -> None:
        """Check the budget before the call of a model."""
        self._run.check_budget()
        await self._hooks.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(
        self, context: Any, agent: sdk.Agent[Any], response: sdk.ModelResponse
    ) -> None:
        """A model has spoken."""
        await self._hooks.on_llm_end(context, agent, response)
        self._run.response = agent, response
        if self._run.session.budget is not None:
            self._run.as_turn.spend(usage_of(agent, response))

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """An agent hands over to another."""
        await self._hooks.on_handoff(context=context, from_agent=from_agent, to_agent=to_agent)
        self._run.hand_over(to_agent)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Begin a tool, after the release of the call."""
        if is_function(context, tool):
            await self._run.tool_called(context)
        await self._hooks.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """A tool has returned."""
        await self._hooks.on_tool_end(context, agent, tool, result)
        if is_function(context, tool):
            await self._run.tool_returned(context, result)


def is_function(context: Any, tool: Any) -> bool:
    """Whether a tool is a function; an agent as a tool has a run to report."""
    is_agent = isinstance(tool, sdk.FunctionTool) and isinstance(tool._agent_instance, sdk.Agent)
    return isinstance(context, ToolContext) and not is_agent


class NotesFilter:
    """Gives notes to a model, after whatever filter the caller has."""

    def __init__(self, run: MonitoredRun, inner: Any) -> None:
        self._run = run
        self._inner: Any = inner._inner if isinstance(inner, NotesFilter) else inner

    async def __call__(self, data: sdk_run.CallModelData[Any]) -> Any:
        """The input for a model."""
        model_data = data.model_data if self._inner is None else self._inner(data)
        if isawaitable(model_data):
            model_data = await model_data
        if not isinstance(model_data, sdk_run.ModelInputData):
            return model_data  # the SDK says what is wrong with it
        items = self._run.annotate_input(model_data.input)
        return model_data if items is None else replace(model_data, input=items)


class MonitoredRunner:
    """Delegate every run to the former runner, and report the runs of wrapped teams.

    It is mixed into the class of that runner, and shares its state, so that a custom `run_sync` is
    called as before.

    Attributes:
        dig_inner: The runner that was there.
        dig_teams: The wrapped teams.
    """

    __slots__ = ()

    dig_inner: sdk_run.AgentRunner
    dig_teams: list[AgentTeam]

    async def run(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        """Run an agent until there is a result."""
        run = self._run_of(starting_agent, input, kwargs)
        if run is None:
            return await self.dig_inner.run(starting_agent, input, **kwargs)
        options = monitored_options(kwargs, run)
        if isinstance(input, sdk.RunState):
            options["max_turns"] = input._max_turns  # the SDK, too, looks at nothing else then
        try:
            await run.wait_to_begin()
            with inside(run.as_turn):
                try:
                    result = await self.dig_inner.run(starting_agent, input, **options)
                except sdk.AgentsException as error:
                    result = await run.last_turn(self.dig_inner, error, options)
                while await run.is_handed_back(result, options):
                    result = await run.once_more(self.dig_inner, result, options)
        except BaseException as error:
            run.fail(error)
            raise
        return result

    def run_streamed(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        """Begin a streamed run of an agent."""
        run = self._run_of(starting_agent, input, kwargs, is_streamed=True)
        if run is None:
            return self.dig_inner.run_streamed(starting_agent, input, **kwargs)
        try:
            with inside(run.as_turn):
                options = monitored_options(kwargs, run)
                result = self.dig_inner.run_streamed(starting_agent, input, **options)
        except BaseException as error:
            run.fail(error)
            raise
        result.run_loop_task.add_done_callback(partial(run.end_stream, result))
        return result

    def _run_of(
        self, agent: Any, inputs: Any, options: dict[str, Any], *, is_streamed: bool = False
    ) -> MonitoredRun | None:
        """The monitored run for a call, if the agent belongs to a wrapped team."""
        if isinstance(inputs, sdk.RunState):
            agent = inputs._current_agent or agent
        caller = running()
        if caller is not None and any(caller.team is team for team in self.dig_teams):
            teams = [] if caller.has_failed else [caller.team]
        else:
            teams, caller = [team for team in self.dig_teams if team.has(agent)], None
            teams.sort(key=lambda team: team.first is not agent)
        is_kept = any(
            options.get(name)
            for name in ("conversation_id", "previous_response_id", "auto_previous_response_id")
        )
        may_bounce = not (is_streamed or is_kept)
        for team in teams if isinstance(inputs, sdk.RunState) else ():
            guard = team.session.guard
            run: MonitoredRun | None = guard.run(team.waiting.take, inputs, caller, default=None)
            if run is not None:
                run.resume(may_bounce=may_bounce)
                return run
        for team in teams[:1]:
            return MonitoredRun(
                team, agent, inputs, caller=caller, may_bounce=may_bounce, is_streamed=is_streamed
            )
        return None


def monitored_runner(inner: sdk_run.AgentRunner) -> Any:
    """Make a runner in place of another, with the same class and state."""
    kind = type(inner)
    own: dict[str, Any] = {"__slots__": ("dig_inner", "dig_teams"), "__module__": kind.__module__}
    own |= {"run": MonitoredRunner.run, "run_streamed": MonitoredRunner.run_streamed}
    # Its own class comes first: a mock makes the mocks of its methods of the class after its own.
    now: Any = object.__new__(type(kind.__name__, (kind, MonitoredRunner), own))
    # A runner may have its own way of setting attributes, as a mock does.
    for name, value in (("__dict__", inner.__dict__), ("dig_inner", inner), ("dig_teams", [])):
        object.__setattr__(now, name, value)
    return now


def install(team: AgentTeam) -> None:
    """Have the runs of a team monitored from now on."""
    now = sdk_run.get_default_agent_runner()
    if not isinstance(now, MonitoredRunner):
        now = monitored_runner(now)
        sdk_run.set_default_agent_runner(now)
    now.dig_teams.append(team)


def remove(team: AgentTeam) -> None:
    """Stop monitoring a team; the last removal restores the former runner."""
    now = sdk_run.get_default_agent_runner()
    if not isinstance(now, MonitoredRunner):
        return  # other code has put another one in its place
    now.dig_teams[:] = [other for other in now.dig_teams if other is not team]
    if not now.dig_teams:
        sdk_run.set_default_agent_runner(now.dig_inner)
