"""The agents of a team, and the patches of agents and workflows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from llama_index.core.agent.workflow import AgentWorkflow, BaseWorkflowAgent
from llama_index.core.workflow import Context, StartEvent
from workflows.handler import WorkflowHandler

from dig.adapters.base import (
    Patches,
    Session,
    agents_by_name,
    as_payload,
    members_by_name,
    need_attributes,
)
from dig.errors import SettingsError

from .runs import WatchedRun, running


def members_of(team: Any) -> tuple[dict[str, Any], list[Any]]:
    """The agents of a team, by name in the trace, and the workflows.

    Raises:
        SettingsError: An object is neither, or LlamaIndex is put together in another way.
    """
    need_attributes("LlamaIndex", (WorkflowHandler,), ("ctx", "_wait_for_result"))
    need_attributes("LlamaIndex", (AgentWorkflow,), ("run", "_call_tool"))
    need_attributes("LlamaIndex", (BaseWorkflowAgent,), ("run", "_call_tool", "take_step"))
    members = members_by_name(team, lambda member: getattr(member, "name", ""))
    workflows = [member for _, member in members if isinstance(member, AgentWorkflow)]
    for workflow in workflows:
        members += workflow.agents.items()
    agents = [named for named in members if not isinstance(named[1], AgentWorkflow)]
    for _, member in agents:
        if not isinstance(member, BaseWorkflowAgent):
            raise SettingsError(
                f"{type(member).__name__} is no AgentWorkflow and no agent of LlamaIndex; the "
                "steps of a plain Workflow are no agents: wrap the agents that it runs"
            )
    return agents_by_name(agents), workflows


class WatchedWorkflows:
    """A wrapped team.

    Attributes:
        restore: Gives agents and workflows their own methods back.
    """

    def __init__(
        self, session: Session, agents: Mapping[str, Any], workflows: Sequence[Any], *, tools: bool
    ) -> None:
        """Have the runs of a team monitored from now on.

        Args:
            session: The session of the team.
            agents: The agents, by name in the trace.
            workflows: The workflows of several agents.
            tools: Whether the calls of tools are events.
        """
        self._session, self._tools = session, tools
        self._agents = {name: (agent, agent.take_step) for name, agent in agents.items()}
        self._latest = WeakKeyDictionary[Context, WatchedRun]()  # of each conversation
        patches = Patches()
        self.restore = patches.restore
        for name, agent in agents.items():
            patches.patch(agent, "take_step", self._take_step, name)
        for owner, entry in (
            *((agent, name) for name, agent in agents.items()),
            *((workflow, workflow.root_agent) for workflow in workflows),
        ):
            patches.patch(owner, "run", self._run, entry)
            patches.patch(owner, "_call_tool", self._call_tool)

    def _run(self, original: Callable[..., Any], entry: str, *args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values())
        context = next((value for value in values if isinstance(value, Context)), None)
        # A conversation goes on with the agent of its latest hand-over.
        before = None if context is None else self._latest.get(context)
        run = WatchedRun(
            self._session, self._agents, entry if before is None else before.agent,
            as_payload(question(args, kwargs)), tools=self._tools,
        )  # fmt: skip
        token = running.set(run)  # for the tasks of the run
        try:
            handler = original(*args, **kwargs)
        except BaseException as error:
            run.fail(error)
            raise
        finally:
            running.reset(token)
        self._latest[handler.ctx] = run
        handler._result_task.add_done_callback(run.end)
        return handler

    async def _take_step(
        self, original: Callable[..., Any], name: str, *args: Any, **kwargs: Any
    ) -> Any:
        run = running.get()
        if run is None or not run.is_of(self._session):
            return await original(*args, **kwargs)
        return await run.take_step(name, *args, **kwargs)

    async def _call_tool(
        self, original: Callable[..., Any], context: Any, tool: Any, arguments: Any
    ) -> Any:
        run = running.get()
        if run is None or not run.is_of(self._session):
            return await original(context, tool, arguments)
        return await run.call_tool(original, context, tool, arguments)


def question(args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The question for a run: the message of the user, or the end of the history."""
    values = (*args, *options.values())
    start: Any = next((value for value in values if isinstance(value, StartEvent)), {})
    first = next((arg for arg in args[:1] if not isinstance(arg, Context | StartEvent)), None)
    history = options.get("chat_history") or start.get("chat_history", None) or [None]
    message = options.get("user_msg") or start.get("user_msg", None) or first or history[-1]
    return getattr(message, "content", message)
