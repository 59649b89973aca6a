"""Microsoft agent-framework: workflows (docs/wrapping-agent-framework.md).

- `taps`: what stands in place of the methods of a workflow, its edges and its executors.
- `team`: who works on what. `post`: what is between them. `run`: one run, with its end.
- `work`: what a handler was given and has sent. `routes`: where edges lead. `payloads`: in words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dig.adapters import Attached, Plan, Session, need_version
from dig.detectors.interventions import Reroute
from dig.errors import SettingsError

__all__ = ["plan"]

VERSIONS = ("1.23.0", "1.24")
"""The lowest version of the core that this was tested with, and the first that it was not."""

CAN = frozenset({"annotate", "tell", "hold", "bounce", "reroute"})

END = "__end__"

WORKFLOW = ("_runner", "executors", "get_executors_list")
RUNNER = (
    "_edge_runners", "_edge_runner_map", "_iteration", "_max_iterations", "context",
    "run_until_convergence",
)  # fmt: skip
CONTEXT = (
    "send_message", "drain_messages", "is_streaming", "classify_yielded_output",
    "get_pending_request_info_events",
)  # fmt: skip
EDGES = ("_edge_group", "_can_handle", "_execute_on_target", "send_message")
EXECUTOR = ("_find_handler", "execute")
AGENT = ("_run_agent", "_run_agent_streaming", "_cache")


def plan(
    team: Any,
    *,
    annotate: Callable[[Any, tuple[str, ...]], Any] | None = None,
    handoff: Callable[[Any, Any], bool] | None = None,
) -> Plan:
    """Look at a workflow, and refuse what cannot be wrapped.

    Args:
        team: What `WorkflowBuilder` or one of the orchestration builders has built.
        annotate: Puts notes into what an executor is given: `(data, notes) -> data`, a copy. By
            default only agents are shown them, as messages; `dig.notes()` always has them.
        handoff: Whether an executor that was given the first, and has sent the second, has only
            handed on what it was given; by default, if these are equal, or if it asks another
            agent without a word.

    Raises:
        SettingsError: It is no workflow, or agent-framework is not one that was tested.
    """
    need_version("agent-framework-core", *VERSIONS, extra="agent-framework")
    try:
        from agent_framework import AgentExecutor, Workflow

        from .payloads import is_handoff
        from .team import Team
        from .workflow import WorkflowTaps
    except ImportError as error:
        raise SettingsError(f"this agent-framework is put together otherwise: {error}") from error
    if not isinstance(team, Workflow):
        kind = type(team).__name__
        raise SettingsError(f"{kind} is no workflow; wrap the Workflow that its builder has built")
    executors = team.get_executors_list() if hasattr(team, "get_executors_list") else []
    agents = [one for one in executors if isinstance(one, AgentExecutor)]
    _check((team,), WORKFLOW)
    _check((team._runner,), RUNNER)
    _check((team._runner.context,), CONTEXT)
    _check(team._runner._edge_runners, EDGES)
    _check(executors, EXECUTOR)
    _check(agents, AGENT)
    if END in team.executors:
        raise SettingsError(f"an executor is called {END}, which stands for the end of a run here")

    inside: list[Team] = []

    def attach(session: Session) -> Attached:
        inside.append(Team(team, END, session, handoff or is_handoff))
        return Attached(team, WorkflowTaps(team, inside[0], annotate).restore)

    def veto(wish: Reroute) -> str | None:
        return inside[0].veto(wish)

    return Plan("a workflow", (*team.executors, END), attach, CAN, veto)


def _check(owners: Any, names: tuple[str, ...]) -> None:
    """Feature-test what is not public in agent-framework.

    Raises:
        SettingsError: It is not as this module expects it.
    """
    for owner in owners:
        missing = [name for name in names if not hasattr(owner, name)]
        if missing:
            kind, what = type(owner).__name__, ", ".join(missing)
            raise SettingsError(f"this agent-framework is put together otherwise: {kind}.{what}")
