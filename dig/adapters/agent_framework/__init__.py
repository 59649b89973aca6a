"""Microsoft agent-framework: workflows (docs/wrapping-agent-framework.md).

- `workflow`: patches the methods of a workflow, its edges and its executors.
- `team`: the open turns of executors and what is between them. `run`: one run, with its end.
- `handlers`: the deliveries and messages of a handler, the ways of edges; payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from dig.adapters import base
from dig.detectors.interventions import Reroute
from dig.errors import SettingsError

if TYPE_CHECKING:
    from agent_framework import Workflow

__all__ = ["plan"]

VERSIONS = ("1.23.0", "1.24")
"""The lowest version of the core that this was tested with, and the first that it was not."""

CAN = frozenset({"annotate", "tell", "hold", "bounce", "reroute", "stop", "meter", "hand_back"})

WORKFLOW = ("_restored_checkpoint_id", "_runner", "executors", "get_executors_list")
RUNNER = (
    "_edge_runners", "_edge_runner_map", "_iteration", "_max_iterations", "context",
    "run_until_convergence",
)  # fmt: skip
CONTEXT = (
    "send_message", "drain_messages", "is_streaming", "classify_yielded_output",
    "get_pending_request_info_events", "add_request_info_event",
)  # fmt: skip
EDGES = ("_edge_group", "_can_handle", "_execute_on_target", "send_message")
EXECUTOR = ("_find_handler", "execute")
AGENT = ("_run_agent", "_run_agent_streaming", "_cache")


def plan(
    team: Any,
    *,
    annotate: Callable[[Any, tuple[str, ...]], Any] | None = None,
    handoff: Callable[[Any, Any], bool] | None = None,
    inside: bool = False,
) -> base.WrapPlan:
    """Plan the wrapping of a workflow; refuse other teams.

    Args:
        team: The workflow that `WorkflowBuilder` or one of the orchestration builders has built.
        annotate: Puts notes into what an executor is given: `(data, notes) -> data`, a copy. By
            default only agents are shown them, as messages; `dig.notes()` always has them.
        handoff: Whether an executor that was given the first, and has sent the second, has only
            handed on what it was given; by default, if these are equal, or if it asks another
            agent without a word.
        inside: Whether the executors of workflows that are executors are agents
            `WORKFLOW/EXECUTOR`.

    Raises:
        SettingsError: The team is no workflow, or agent-framework is not one that was tested.
    """
    packages = ("agent-framework-core",)
    with base.importing("agent-framework", packages, VERSIONS, extra="agent-framework"):
        from agent_framework import Workflow

        from .handlers import is_handoff
        from .team import WorkflowTeam
        from .workflow import WorkflowPatches
    if not isinstance(team, Workflow):
        kind = type(team).__name__
        raise SettingsError(f"{kind} is no workflow; wrap the Workflow that its builder has built")
    workflows = _workflows(team, inside)
    teams: list[WorkflowTeam] = []

    def attach(session: base.Session) -> base.Attached:
        patches = [
            WorkflowPatches(
                workflow,
                WorkflowTeam(workflow, prefix, session, handoff or is_handoff, teams),
                annotate,
            )
            for prefix, workflow in workflows.items()
        ]

        def restore() -> None:
            for patch in patches:
                patch.restore()

        return base.Attached(team, restore)

    def veto(wish: Reroute) -> str | None:
        return next((team for team in teams if team.knows(wish.to)), teams[0]).veto(wish)

    return base.WrapPlan("a workflow", _agents(workflows), attach, CAN, veto)


def _workflows(workflow: Workflow, inside: bool, prefix: str = "") -> dict[str, Workflow]:
    """A workflow, and with `inside` the workflows among the executors, by prefix of agent names."""
    from agent_framework import WorkflowExecutor

    _check(workflow)
    workflows = {prefix: workflow}
    for name, executor in workflow.executors.items() if inside else ():
        if isinstance(executor, WorkflowExecutor):
            workflows |= _workflows(executor.workflow, inside, f"{prefix}{name}/")
    return workflows


def _agents(workflows: Mapping[str, Workflow]) -> tuple[str, ...]:
    """The names of all agents of some workflows, given by prefix.

    Raises:
        SettingsError: Two have one name, or a workflow is there twice.
    """
    from .handlers import END

    if len({id(workflow) for workflow in workflows.values()}) < len(workflows):
        raise SettingsError(
            "one workflow is the work of two executors, which agent-framework does not want; "
            "give each its own, or wrap without inside=True"
        )
    agents = tuple(
        f"{prefix}{name}"
        for prefix, workflow in workflows.items()
        for name in (*workflow.executors, END)
    )
    base.need_one_name(agents, base.WITHIN)
    return agents


def _check(team: Workflow) -> None:
    """Feature-test the private parts of agent-framework.

    Raises:
        SettingsError: It is not as this package expects it.
    """
    from agent_framework import AgentExecutor

    from .handlers import END

    executors = team.get_executors_list() if hasattr(team, "get_executors_list") else []
    agents = [executor for executor in executors if isinstance(executor, AgentExecutor)]
    base.need_attributes("agent-framework", (team,), WORKFLOW)
    base.need_attributes("agent-framework", (team._runner,), RUNNER)
    base.need_attributes("agent-framework", (team._runner.context,), CONTEXT)
    base.need_attributes("agent-framework", team._runner._edge_runners, EDGES)
    base.need_attributes("agent-framework", executors, EXECUTOR)
    base.need_attributes("agent-framework", agents, AGENT)
    for call in (AgentExecutor._run_agent, AgentExecutor._run_agent_streaming):
        if "messages" not in signature(call).parameters:  # before 1.23
            raise SettingsError(
                f"this agent-framework is put together in another way: {call.__name__} takes no "
                "messages"
            )
    if END in team.executors:
        raise SettingsError(f"an executor is called {END}, which stands for the end of a run here")
