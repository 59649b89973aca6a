"""LangGraph: compiled state graphs (docs/wrapping-langgraph.md).

- `graph`: the monitored copy of a graph, and each call of it. `node`: what replaces a node.
- `run`: one request: which node was started by which, what becomes of it, and where LangGraph
  itself stops it, which healing never goes past. `messages`: what waits for nodes to run.
- `routes`: what a node writes that starts others; payloads and notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from dig.adapters.base import (
    Attached,
    Session,
    WrapPlan,
    allowing,
    importing,
    need_attributes,
)
from dig.errors import SettingsError

__all__ = ["plan"]

VERSIONS = ("1.1.10", "1.3")
"""The lowest version of LangGraph that this was tested with, and the first that it was not."""


def plan(
    team: Any,
    *,
    annotate: Callable[[Any, tuple[str, ...]], Any] | None = None,
    handoff: Callable[[Mapping[str, Any]], bool] | None = None,
    allow: Iterable[str] = (),
    tools: bool = False,
) -> WrapPlan:
    """Look at a compiled graph, and refuse what cannot be wrapped.

    Args:
        team: The graph that `StateGraph.compile` or `create_agent` returned.
        annotate: Puts notes into what a node is given: `(state, notes) -> state`, a copy; by
            default a message at the end of `messages`.
        handoff: Whether a node that wrote this and chose who is next has only handed on what it
            was given; by default, if it wrote nothing, or called a tool `transfer_to_NAME`.
        allow: `reassign`: a node that does not come back is cancelled, and the function of another
            one is run in its place, with what the first one was given.
        tools: Whether tools are agents `tool:NAME`, so that their calls are events.

    Raises:
        SettingsError: The team is no compiled state graph, or LangGraph is not one that was tested.
    """
    with importing("LangGraph", ("langgraph",), VERSIONS, extra="langgraph"):
        from . import graph, routes, run
        from .messages import GraphTeam
    _check(team)
    allowed = allowing(allow, {"reassign"})
    keys = {routes.plain(key): key for key in team.nodes if not key.startswith("__")}
    nodes = tuple(keys)
    shared = GraphTeam(
        _static_edges(team, nodes),
        bool(team.builder.waiting_edges),
        frozenset(name for name in nodes if team.nodes[name].cache_policy),
        frozenset(name for name in nodes if _may_be_retried(team, name)),
        {name: found for name in nodes if (found := _error_handler(team.nodes[name]))},
        keys,
        team,
        annotate or routes.as_messages,
        handoff or routes.is_handoff,
        tools,
    )

    def attach(session: Session) -> Attached:
        shared.session = session
        twin = graph.monitored(team, shared)
        return Attached(twin, partial(graph.restore, twin))

    can = allowed | {"annotate", "tell", "reroute", "hold"}
    can |= {"bounce"} if _can_go_on(team) else set()
    agents = ("__start__", *nodes, "__end__")
    return WrapPlan("a LangGraph graph", agents, attach, can, partial(run.veto, shared))


GRAPH = (
    "nodes", "channels", "builder", "stream", "astream", "copy", "checkpointer", "retry_policy",
    "interrupt_before_nodes", "interrupt_after_nodes",
)  # fmt: skip
NODE = ("node", "bound", "copy", "cache_policy", "retry_policy")


def _check(team: Any) -> None:
    """Feature-test what is not public in LangGraph.

    Raises:
        SettingsError: The graph is not as this module expects it.
    """
    from langgraph.graph.state import CompiledStateGraph

    from .routes import BRANCH, JOIN

    if not isinstance(team, CompiledStateGraph):
        raise SettingsError(f"{type(team).__name__} is no compiled state graph; compile it first")
    need_attributes("LangGraph", (team,), GRAPH)
    need_attributes("LangGraph", (team.builder,), ("edges", "waiting_edges", "nodes"))
    need_attributes("LangGraph", team.nodes.values(), NODE)
    wanted = {f"{BRANCH}{key}" for key in team.nodes if not key.startswith("__")}
    wanted |= {f"{JOIN}{'+'.join(begin)}:{end}" for begin, end in team.builder.waiting_edges}
    if missing := wanted - team.channels.keys():
        raise SettingsError(
            f"this LangGraph is put together in another way: no channel {min(missing)}"
        )


def _static_edges(team: Any, nodes: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """For each node, those that always run after it."""
    edges = {*team.builder.edges}
    edges |= {(source, end) for sources, end in team.builder.waiting_edges for source in sources}
    return {name: frozenset(end for source, end in edges if source == name) for name in nodes}


def _may_be_retried(team: Any, name: str) -> bool:
    return bool(team.nodes[name].retry_policy or team.retry_policy)


def _error_handler(node: Any) -> str | None:
    """The node that is run when a node fails; LangGraph has had these since 1.2."""
    return getattr(node, "error_handler_node", None)


def _can_go_on(team: Any) -> bool:
    """Whether a run that has ended can be taken up again: if its state is kept."""
    from langgraph.checkpoint.base import BaseCheckpointSaver

    return isinstance(team.checkpointer, BaseCheckpointSaver)
