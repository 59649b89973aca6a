"""Replaces the object that `Runner` has its work done by, and monitors runs of wrapped teams.

`Runner` asks one object for every run, agents as tools included. This one is put in its place for
as long as a team is wrapped, and hands every run on; agents and tools are not touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    ModelResponse,
    RunConfig,
    RunHooks,
    RunResult,
    RunResultStreaming,
    RunState,
)
from agents.lifecycle import RunHooksBase
from agents.run import (
    AgentRunner,
    CallModelData,
    ModelInputData,
    get_default_agent_runner,
    set_default_agent_runner,
)
from agents.tool_context import ToolContext

from dig.adapters.base import inside, need_attributes
from dig.errors import SettingsError

from .messages import AgentTeam, next_agent
from .run import MonitoredRun, running

NEEDED: tuple[tuple[type, tuple[str, ...]], ...] = (
    (AgentRunner, ("run", "run_sync", "run_streamed")),
    (FunctionTool, ("_agent_instance",)),
    (Handoff, ("_agent_ref", "tool_name", "agent_name")),
    (RunConfig, ("call_model_input_filter",)),
    (RunHooks, ("on_agent_start", "on_agent_end", "on_handoff", "on_llm_start", "on_llm_end",
                "on_tool_start", "on_tool_end")),
    (RunResult, ("interruptions", "last_agent", "raw_responses", "new_items", "context_wrapper")),
    (RunResultStreaming, ("_stored_exception", "_cancel_mode", "run_loop_task")),
    (RunState, ("_current_agent", "_current_step", "_max_turns")),
)  # fmt: skip
"""Attributes of the SDK that are relied on, by class."""


def of(team: Any) -> dict[str, Agent[Any]]:
    """A team's agents by their names in the trace, the one that was given first.

    Of several that are called the same, in the order in which they are reached, the second is
    `NAME (2)`.

    Raises:
        SettingsError: The object is no agent, or the SDK is put together in another way.
    """
    for kind, names in NEEDED:
        need_attributes("Agents SDK", (kind,), names)
    if not isinstance(team, Agent):
        raise SettingsError(f"{type(team).__name__} is no agent that Runner.run would take")
    agents: dict[str, Agent[Any]] = {}
    waiting = [team]
    while waiting:
        agent = waiting.pop(0)
        if any(agent is known for known in agents.values()):
            continue
        name, number = agent.name, 1
        while name in agents:
            number += 1
            name = f"{agent.name} ({number})"
        agents[name] = agent
        waiting.extend(reachable(agent))
    return agents


def reachable(agent: Agent[Any]) -> Iterator[Agent[Any]]:
    """The agents that one can hand over to or use as tools; not those that code finds later."""
    yield from filter(None, map(next_agent, agent.handoffs))
    for tool in agent.tools:
        inner = tool._agent_instance if isinstance(tool, FunctionTool) else None
        if isinstance(inner, Agent):
            yield inner


HOOKS = ("on_llm_start", "on_agent_end")
"""Hooks that nothing is added to."""

TOOL_HOOKS = ("on_tool_start", "on_tool_end")
"""Nor to these, unless calls of tools are to be told."""


def monitored(options: Mapping[str, Any], run: MonitoredRun) -> dict[str, Any]:
    """The options of a run, with what tells it of handoffs and gives notes to its models."""
    changed = dict(options)
    hooks = options.get("hooks")
    if hooks is None or isinstance(hooks, RunHooksBase):
        changed["hooks"] = MonitoredHooks(run, hooks or RunHooks())
    if run.session.mode == "heal":
        changed["run_config"] = _with_filter(options.get("run_config"), run)
    return changed


def _with_filter(config: Any, run: MonitoredRun) -> Any:
    key = "call_model_input_filter"
    if config is None or isinstance(config, dict):
        config = config or {}
        return {**config, key: NotesFilter(run, config.get(key))}
    return replace(config, **{key: NotesFilter(run, getattr(config, key))})


class MonitoredHooks(RunHooks[Any]):  # type: ignore[misc]
    """The hooks of a run: the caller's own, and what the run must know."""

    def __init__(self, run: MonitoredRun, hooks: RunHooksBase[Any, Any]) -> None:
        self._run = run
        self._hooks = hooks
        for name in HOOKS if run.team.tools else (*HOOKS, *TOOL_HOOKS):
            setattr(self, name, getattr(hooks, name))

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """An agent is about to begin; what it is given may be held."""
        await self._run.begun()
        await self._hooks.on_agent_start(context, agent)

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        """A model has spoken."""
        await self._hooks.on_llm_end(context, agent, response)
        self._run.hear(agent, response)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """An agent hands over to another."""
        await self._hooks.on_handoff(context=context, from_agent=from_agent, to_agent=to_agent)
        self._run.hand_over(to_agent)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A tool is about to begin; what it is called with may be held."""
        if is_function(context, tool):
            await self._run.tool_called(context)
        await self._hooks.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """A tool has returned."""
        await self._hooks.on_tool_end(context, agent, tool, result)
        if is_function(context, tool):
            self._run.tool_returned(context, result)


def is_function(context: Any, tool: Any) -> bool:
    """Whether a tool is a function: an agent is told of by its own run."""
    is_agent = isinstance(tool, FunctionTool) and isinstance(tool._agent_instance, Agent)
    return isinstance(context, ToolContext) and not is_agent


class NotesFilter:
    """Gives notes to a model, after whatever filter the caller has."""

    def __init__(self, run: MonitoredRun, inner: Any) -> None:
        self._run = run
        self._inner: Any = inner._inner if isinstance(inner, NotesFilter) else inner

    async def __call__(self, data: CallModelData[Any]) -> Any:
        """The input for a model."""
        given = data.model_data if self._inner is None else self._inner(data)
        if isawaitable(given):
            given = await given
        if not isinstance(given, ModelInputData):
            return given  # the SDK says what is wrong with it
        items = self._run.annotated(given.input)
        return given if items is None else replace(given, input=items)


class MonitoredRunner:
    """Has every run done by the runner that was there, and tells sessions of those of teams.

    It is mixed into the class of that runner, and shares its state, so that a custom `run_sync` is
    called as before.

    Attributes:
        dig_inner: The runner that was there.
        dig_teams: The wrapped teams.
    """

    __slots__ = ()

    dig_inner: AgentRunner
    dig_teams: list[AgentTeam]

    async def run(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        """Run an agent until there is a result."""
        run = self._run_of(starting_agent, input, kwargs)
        if run is None:
            return await self.dig_inner.run(starting_agent, input, **kwargs)
        options = monitored(kwargs, run)
        if isinstance(input, RunState):
            options["max_turns"] = input._max_turns  # the SDK, too, looks at nothing else then
        try:
            await run.begun()
            with inside(run.as_turn):
                result = await self.dig_inner.run(starting_agent, input, **options)
                while await run.is_handed_back(result, options):
                    result = await run.once_more(self.dig_inner, result, options)
        except BaseException as error:
            run.fail(error)
            raise
        return result

    def run_streamed(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        """Begin to run an agent, and return what streams what happens."""
        run = self._run_of(starting_agent, input, kwargs, is_streamed=True)
        if run is None:
            return self.dig_inner.run_streamed(starting_agent, input, **kwargs)
        try:
            with inside(run.as_turn):
                options = monitored(kwargs, run)
                result = self.dig_inner.run_streamed(starting_agent, input, **options)
        except BaseException as error:
            run.fail(error)
            raise
        run.follow(result)
        return result

    def _run_of(
        self, agent: Any, given: Any, options: dict[str, Any], *, is_streamed: bool = False
    ) -> MonitoredRun | None:
        """The monitored run of a run, if it belongs to a wrapped team."""
        if isinstance(given, RunState):
            agent = given._current_agent or agent
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
        for team in teams if isinstance(given, RunState) else ():
            guard = team.session.guard
            run: MonitoredRun | None = guard.run(team.waiting.take, given, caller, default=None)
            if run is not None:
                run.resume(may_bounce=may_bounce)
                return run
        for team in teams[:1]:
            return MonitoredRun(team, agent, given, caller=caller, may_bounce=may_bounce)
        return None


def monitored_runner(inner: AgentRunner) -> Any:
    """A runner that stands in place of another, with its class and its state."""
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
    now = get_default_agent_runner()
    if not isinstance(now, MonitoredRunner):
        now = monitored_runner(now)
        set_default_agent_runner(now)
    now.dig_teams.append(team)


def remove(team: AgentTeam) -> None:
    """Have the runs of a team not monitored any more; the last one puts back what was there."""
    now = get_default_agent_runner()
    if not isinstance(now, MonitoredRunner):
        return  # other code has put another one in its place
    now.dig_teams[:] = [one for one in now.dig_teams if one is not team]
    if not now.dig_teams:
        set_default_agent_runner(now.dig_inner)
