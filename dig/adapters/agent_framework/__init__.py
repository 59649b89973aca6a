"""Microsoft agent-framework: workflows (docs/wrapping-agent-framework.md).

- `workflow`: patches the methods of a workflow, its edges and its executors.
- `team`: the open turns of executors and what is between them. `run`: one run, with its end.
- `messages`: what a handler was given and has sent, where edges lead; payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from dig.adapters.base import Attached, Session, WrapPlan, importing, need_attributes, need_one_name
from dig.detectors.interventions import Reroute
from dig.errors import SettingsError

if TYPE_CHECKING:
    from agent_framework import Workflow

__all__ = ["plan"]

VERSIONS = ("1.23.0", "1.24")
"""The lowest version of the core that this was tested with, and the first that it was not."""

CAN = frozenset({"annotate", "tell", "hold", "bounce", "reroute"})

WORKFLOW = ("_runner", "executors", "get_executors_list")
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
) -> WrapPlan:
    """Look at a workflow, and refuse what cannot be wrapped.

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
    with importing("agent-framework", packages, VERSIONS, extra="agent-framework"):
        from agent_framework import Workflow

        from .messages import is_handoff
        from .team import WorkflowTeam
        from .workflow import WorkflowPatches
    if not isinstance(team, Workflow):
        kind = type(team).__name__
        raise SettingsError(f"{kind} is no workflow; wrap the Workflow that its builder has built")
    workflows = _workflows(team, inside)
    teams: list[WorkflowTeam] = []

    def attach(session: Session) -> Attached:
        patches = [
            WorkflowPatches(
                one, WorkflowTeam(one, prefix, session, handoff or is_handoff, teams), annotate
            )
            for prefix, one in workflows.items()
        ]

        def restore() -> None:
            for one in patches:
                one.restore()

        return Attached(team, restore)

    def veto(wish: Reroute) -> str | None:
        return next((one for one in teams if one.knows(wish.to)), teams[0]).veto(wish)

    return WrapPlan("a workflow", _agents(workflows), attach, CAN, veto)


def _workflows(workflow: Workflow, inside: bool, prefix: str = "") -> dict[str, Workflow]:
    """A workflow, and with `inside` those that are its executors, by the prefix of their agents."""
    from agent_framework import WorkflowExecutor

    _check(workflow)
    found = {prefix: workflow}
    for name, one in workflow.executors.items() if inside else ():
        if isinstance(one, WorkflowExecutor):
            found |= _workflows(one.workflow, inside, f"{prefix}{name}/")
    return found


def _agents(workflows: Mapping[str, Workflow]) -> tuple[str, ...]:
    """The agents of workflows, by the prefix of their names.

    Raises:
        SettingsError: Two have one name, or a workflow is there twice.
    """
    from .messages import END

    if len({id(one) for one in workflows.values()}) < len(workflows):
        raise SettingsError(
            "one workflow is the work of two executors, which agent-framework does not want; "
            "give each its own, or wrap without inside=True"
        )
    names = {prefix: (*one.executors, END) for prefix, one in workflows.items()}
    agents = tuple(f"{prefix}{name}" for prefix, some in names.items() for name in some)
    need_one_name(agents)
    return agents


def _check(team: Workflow) -> None:
    """Feature-test what is not public in agent-framework.

    Raises:
        SettingsError: It is not as this package expects it.
    """
    from agent_framework import AgentExecutor

    from .messages import END

    executors = team.get_executors_list() if hasattr(team, "get_executors_list") else []
    agents = [one for one in executors if isinstance(one, AgentExecutor)]
    need_attributes("agent-framework", (team,), WORKFLOW)
    need_attributes("agent-framework", (team._runner,), RUNNER)
    need_attributes("agent-framework", (team._runner.context,), CONTEXT)
    need_attributes("agent-framework", team._runner._edge_runners, EDGES)
    need_attributes("agent-framework", executors, EXECUTOR)
    need_attributes("agent-framework", agents, AGENT)
    for call in (AgentExecutor._run_agent, AgentExecutor._run_agent_streaming):
        if "messages" not in signature(call).parameters:  # before 1.23
            raise SettingsError(
                f"this agent-framework is put together in another way: {call.__name__} takes no "
                "messages"
            )
    if END in team.executors:
        raise SettingsError(f"an executor is called {END}, which stands for the end of a run here")
