"""Crews and agents: the beginnings of requests and of turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.agents.agent_builder.base_agent import BaseAgent
from crewai.flow import Flow
from crewai.hooks import register_before_llm_call_hook, unregister_before_llm_call_hook
from crewai.types.usage_metrics import UsageMetrics
from crewai.utilities.agent_utils import is_inside_event_loop

from dig.adapters.base import (
    Call,
    Patches,
    Session,
    as_payload,
    current_turn,
    inside,
    need_attributes,
)
from dig.errors import SettingsError

from .tasks import CREW, CrewTaskCall, Kickoff, Work, at_work

__all__ = ["CREW", "WatchedCrew", "agents_of"]

Agents = list[tuple[str, BaseAgent]]

Put = Callable[[Any, str, Any], None]
"""Sets an attribute of a crew or an agent."""


def agents_of(team: Any) -> Agents:
    """The agents of a team, by name in the trace.

    Raises:
        SettingsError: The team is no crew and no agent, or CrewAI is put together in another way.
    """
    need_attributes("CrewAI", (Crew,), ("kickoff", "akickoff", "copy", "_create_manager_agent"))
    need_attributes("CrewAI", (Agent,), ("execute_task", "aexecute_task", "kickoff_async"))
    need_attributes("CrewAI", (BaseLLM,), ("_track_token_usage_internal",))
    if isinstance(team, BaseAgent):
        return _named([team])
    if isinstance(team, Crew):
        return _named(_members(team))
    kind = type(team).__name__
    if isinstance(team, Flow):
        raise SettingsError(
            f"{kind} is a Flow, the code of which is not watched; wrap the crews and agents that "
            "it runs, each by itself: dig.wrap(crew)"
        )
    raise SettingsError(f"{kind} is no Crew and no Agent of CrewAI")


def _members(crew: Crew) -> list[BaseAgent]:
    """The agents of a crew, each once; the manager and agents of tasks alone stand last."""
    others = [crew.manager_agent, *(task.agent for task in crew.tasks)]
    agents = {id(agent): agent for agent in (*crew.agents, *others) if agent is not None}
    return [*agents.values()]


def _named(agents: Iterable[BaseAgent]) -> Agents:
    """Name agents by role: roles need not be unique, and may have places for inputs."""
    named: dict[str, BaseAgent] = {}
    for agent in agents:
        role = " ".join((getattr(agent, "_original_role", None) or agent.role).split())
        numbered = (f"{role} ({number})" for number in range(2, len(named) + 2))
        names = (name for name in (role, *numbered) if name not in named)
        named[next(names)] = agent
    return [*named.items()]


class WatchedCrew:
    """A wrapped crew or agent."""

    def __init__(self, session: Session, team: Any, agents: Agents) -> None:
        """Have the kickoffs of a team monitored from now on.

        Args:
            session: The session of the team.
            team: The crew, or the agent.
            agents: The agents, with their names in the trace.
        """
        self._session, self._patches = session, Patches()
        self._kickoffs: dict[int, Kickoff] = {}  # by the id of each task
        if session.budget is not None:
            self._patches.patch(BaseLLM, "_track_token_usage_internal", self._spend)
        register_before_llm_call_hook(self._annotate)
        for _, agent in agents:  # those of earlier kickoffs have the hooks of that time
            executor = getattr(agent, "agent_executor", None)
            getattr(executor, "before_llm_call_hooks", []).append(self._annotate)
        self._watch(team, agents, self._patches.put)

    def restore(self) -> None:
        """Restore the methods of crew and agents; a second call does nothing."""
        self._patches.restore()
        unregister_before_llm_call_hook(self._annotate)

    def _watch(self, team: Any, agents: Agents, put: Put) -> None:
        for name, agent in agents:
            self._watch_agent(name, agent, put)
        if isinstance(team, Crew):
            for method, replacement, *first in (
                ("kickoff", self._kickoff), ("replay", self._kickoff), ("akickoff", self._akickoff),
                ("copy", self._copy), ("_create_manager_agent", self._create_manager, put),
            ):  # fmt: skip
                original = getattr(team, method)
                put(team, method, self._patches.around(original, replacement, team, *first))

    def _watch_agent(self, name: str, agent: BaseAgent, put: Put) -> None:
        for method, replacement in (
            ("execute_task", self._execute), ("aexecute_task", self._aexecute),
            ("kickoff", self._ask), ("kickoff_async", self._ask_async),
        ):  # fmt: skip
            if original := getattr(agent, method, None):  # agents of other frameworks lack some
                put(agent, method, self._patches.around(original, replacement, name))

    # --- crews ---

    def _kickoff(self, original: Callable[..., Any], crew: Crew, *args: Any, **options: Any) -> Any:
        if crew.stream:  # the stream calls this again, in a thread of its own
            return original(*args, **options)
        with self._open(crew, args) as kickoff, inside(kickoff.call.begin_now()):
            result = original(*args, **options)
            if kickoff.call.turn.is_open:
                kickoff.call.answer_in_thread(result.raw)
            return result

    async def _akickoff(
        self, original: Callable[..., Awaitable[Any]], crew: Crew, *args: Any, **options: Any
    ) -> Any:
        if crew.stream:
            return await original(*args, **options)
        with self._open(crew, args) as kickoff, inside(await kickoff.call.begin()):
            result = await original(*args, **options)
            if kickoff.call.turn.is_open:
                await kickoff.call.answer(result.raw)
            return result

    @contextmanager
    def _open(self, crew: Crew, args: tuple[Any, ...]) -> Iterator[Kickoff]:
        """Report a kickoff; the tasks are known until the end of the block."""
        kickoff = Kickoff(self._session, crew, as_payload(args[0]) if args else None)
        tasks = {id(task): kickoff for task in crew.tasks}
        self._kickoffs |= tasks
        try:
            with kickoff.call:
                yield kickoff
        finally:
            for task in tasks:
                self._kickoffs.pop(task, None)

    def _copy(self, original: Callable[[], Crew], crew: Crew) -> Crew:
        """Watch a copy, such as `kickoff_for_each` makes, under the names of the copied agents."""
        twin = original()
        names = (name for name, _ in _named(_members(crew)))
        self._watch(twin, [*zip(names, _members(twin), strict=False)], object.__setattr__)
        return twin

    def _create_manager(self, original: Callable[[], None], crew: Crew, put: Put) -> None:
        before = crew.manager_agent
        original()
        for name, agent in _named(_members(crew)):
            if agent is crew.manager_agent and agent is not before:
                self._watch_agent(name, agent, put)

    # --- agents ---

    def _execute(
        self, original: Callable[..., Any], name: str, task: Task, context: Any = None,
        tools: Any = None,
    ) -> Any:  # fmt: skip
        call = self._task_call(name, task, context)
        if isinstance(call, CrewTaskCall):
            return call.work_now(original, task, context, tools)
        return original(task, context, tools) if call is None else call.output

    async def _aexecute(
        self, original: Callable[..., Awaitable[Any]], name: str, task: Task, context: Any = None,
        tools: Any = None,
    ) -> Any:  # fmt: skip
        call = self._task_call(name, task, context)
        if isinstance(call, CrewTaskCall):
            return await call.work(original, task, context, tools)
        return await original(task, context, tools) if call is None else call.output

    def _task_call(self, name: str, task: Task, context: Any) -> CrewTaskCall | Kickoff | None:
        """The call of an agent; a kickoff that is over; ``None``: again, after an error."""
        work, kickoff = at_work.get(), self._kickoffs.get(id(task))
        if work is not None and work.subject is task:
            return None
        if kickoff is not None and kickoff.is_over:
            return kickoff
        return CrewTaskCall(self._session, name, task, context, kickoff)

    def _ask(
        self, original: Callable[..., Any], name: str, messages: Any, *args: Any, **options: Any
    ) -> Any:
        if is_inside_event_loop():  # then it calls `kickoff_async`
            return original(messages, *args, **options)
        work = Work(messages)

        def attempt(agent: str, notes: tuple[str, ...]) -> Any:
            with work.attempt():
                output = original(messages, *args, **options)
            work.answer = output.raw
            return output

        return self._question(name, messages).run_now(attempt)

    async def _ask_async(
        self, original: Callable[..., Awaitable[Any]], name: str, messages: Any, *args: Any,
        **options: Any,
    ) -> Any:  # fmt: skip
        work = Work(messages)

        async def attempt(agent: str, notes: tuple[str, ...]) -> Any:
            with work.attempt():
                output: Any = await original(messages, *args, **options)
            work.answer = output.raw
            return output

        return await self._question(name, messages).run(attempt)

    def _question(self, name: str, messages: Any) -> Call:
        return Call(self._session, name, as_payload(messages), tell=lambda output: output.raw)

    # --- models ---

    def _annotate(self, context: Any) -> None:
        """Put new notes into a conversation, before the next request to a model."""
        turn, work = current_turn(self._session), at_work.get()
        if context.executor is None or turn is None or work is None:
            return
        none: tuple[str, ...] = ()
        if text := work.news(turn.guard.run(turn.listen, default=none)):
            context.messages.append({"role": "user", "content": text})

    def _spend(self, original: Callable[..., None], model: BaseLLM, usage: Any) -> None:
        """Count the usage of a model, in the context of the call."""
        original(model, usage)
        turn, counts = current_turn(self._session), UsageMetrics.from_provider_dict(usage)
        if turn is not None and counts is not None:
            turn.spend({
                "model": model.model, "input_tokens": counts.prompt_tokens,
                "output_tokens": counts.completion_tokens,
                "cached_tokens": counts.cached_prompt_tokens,
            })  # fmt: skip
