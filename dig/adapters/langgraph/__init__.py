"""LangGraph: compiled state graphs (docs/wrapping-langgraph.md).

- `graph`: the monitored copy of a graph, and each call of it. `node`: what replaces a node.
- `run`: one request: which node was started by which, what becomes of it, and where LangGraph
  itself stops it, which healing never goes past. `messages`: what waits for nodes to run.
- `routes`: what a node writes that starts others; payloads and notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dig.adapters.base import (
    Attached,
    Session,
    WrapPlan,
    allowing,
    importing,
    need_attributes,
    need_one_name,
)
from dig.errors import SettingsError

if TYPE_CHECKING:
    from .messages import GraphTeam, SharedState

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
    inside: bool = False,
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
        inside: Whether the nodes of graphs that are nodes are agents `GRAPH/NODE`.

    Raises:
        SettingsError: The team is no compiled state graph, or LangGraph is not one that was tested.
    """
    with importing("LangGraph", ("langgraph",), VERSIONS, extra="langgraph"):
        from . import graph, routes, run
        from .messages import SharedState
    allowed = allowing(allow, {"reassign"})
    shared = SharedState(annotate or routes.as_messages, handoff or routes.is_handoff, tools)
    whole = _team(team, shared, inside)
    graphs = tuple(whole.graphs())
    agents = tuple(name for one in graphs for name in (one.start, *one.nodes, one.end))
    need_one_name(agents)

    def attach(session: Session) -> Attached:
        shared.session = session
        twin = graph.monitored(team, whole)
        return Attached(twin, partial(graph.restore, twin))

    can = allowed | {"annotate", "tell", "reroute", "hold"}
    can |= {"bounce"} if _can_go_on(team) else set()
    return WrapPlan("a LangGraph graph", agents, attach, can, partial(run.veto, graphs))


def _team(graph: Any, shared: SharedState, inside: bool, prefix: str = "") -> GraphTeam:
    """The structure of a graph, and with `inside` of the graphs that are its nodes.

    Raises:
        SettingsError: It is not as this module expects it.
    """
    from langgraph.prebuilt import ToolNode

    from .messages import GraphTeam
    from .routes import plain

    _check(graph)
    keys = {f"{prefix}{plain(key)}": key for key in graph.nodes if not key.startswith("__")}
    nodes = {name: graph.nodes[key] for name, key in keys.items()}
    handlers = {name: found for name, one in nodes.items() if (found := _error_handler(one))}
    within = {name: one.bound for name, one in nodes.items() if inside and _is_graph(one.bound)}
    return GraphTeam(
        prefix,
        {name: _static_edges(graph, key, prefix) for name, key in keys.items()},
        {_join(begin, end): len(begin) for begin, end in graph.builder.waiting_edges},
        frozenset(name for name, one in nodes.items() if one.cache_policy),
        frozenset(name for name, key in keys.items() if graph.builder.nodes[key].defer),
        frozenset(name for name, one in nodes.items() if _may_be_retried(graph, one)),
        {name: f"{prefix}{plain(found)}" for name, found in handlers.items()},
        keys,
        graph,
        shared,
        {name: _team(one, shared, inside, f"{name}/") for name, one in within.items()},
        frozenset(name for name, one in nodes.items() if isinstance(one.bound, ToolNode)),
    )


def _is_graph(bound: Any) -> bool:
    """Whether a node is a compiled state graph, and not wrapped by itself."""
    from langgraph.graph.state import CompiledStateGraph

    return isinstance(bound, CompiledStateGraph) and getattr(bound, "dig_team", None) is None


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
    from langgraph.graph.state import END, CompiledStateGraph

    from .routes import BRANCH

    if not isinstance(team, CompiledStateGraph):
        raise SettingsError(f"{type(team).__name__} is no compiled state graph; compile it first")
    need_attributes("LangGraph", (team,), GRAPH)
    need_attributes("LangGraph", (team.builder,), ("edges", "waiting_edges", "nodes"))
    need_attributes("LangGraph", team.nodes.values(), NODE)
    wanted = {f"{BRANCH}{key}" for key in team.nodes if not key.startswith("__")}
    joins = [(begin, end) for begin, end in team.builder.waiting_edges if end != END]
    wanted |= {_join(begin, end) for begin, end in joins}
    if missing := wanted - team.channels.keys():
        raise SettingsError(
            f"this LangGraph is put together in another way: no channel {min(missing)}"
        )


def _join(begin: Iterable[str], end: str) -> str:
    """The channel of a join: the nodes at its beginning write it."""
    from .routes import JOIN

    return f"{JOIN}{'+'.join(begin)}:{end}"


def _static_edges(team: Any, key: str, prefix: str) -> frozenset[str]:
    """The nodes that always run after one, by name."""
    from .routes import plain

    edges = {*team.builder.edges}
    edges |= {(source, end) for sources, end in team.builder.waiting_edges for source in sources}
    return frozenset(f"{prefix}{plain(end)}" for source, end in edges if source == key)


def _may_be_retried(team: Any, node: Any) -> bool:
    return bool(node.retry_policy or team.retry_policy)


def _error_handler(node: Any) -> str | None:
    """The node that is run when a node fails; LangGraph has had these since 1.2."""
    return getattr(node, "error_handler_node", None)


def _can_go_on(team: Any) -> bool:
    """Whether a run that has ended can be taken up again: if its state is kept."""
    from langgraph.checkpoint.base import BaseCheckpointSaver

    return isinstance(team.checkpointer, BaseCheckpointSaver)
