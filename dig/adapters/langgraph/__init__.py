"""LangGraph: compiled state graphs (docs/wrapping-langgraph.md).

- `compiled_graph`: the monitored copy of a graph, and each call of the copy. `node`: the
  replacement of a node.
- `run`: one request: the node that started each node, the answer, and the places where LangGraph
  itself stops, which healing never goes past (`stops`). `messages`: deliveries to nodes.
- `routes`: the writes of a node that start others; payloads and notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dig.adapters import base
from dig.errors import SettingsError

if TYPE_CHECKING:
    from .messages import GraphTeam, SharedState

__all__ = ["plan"]

VERSIONS = ("1.1.10", "1.3")
"""The lowest tested version of LangGraph, and the first version that was not tested."""

CAN = frozenset({"annotate", "tell", "reroute", "hold", "stop", "meter", "hand_back", "sample"})


def plan(
    team: Any,
    *,
    annotate: Callable[[Any, tuple[str, ...]], Any] | None = None,
    handoff: Callable[[Mapping[str, Any]], bool] | None = None,
    allow: Iterable[str] = (),
    tools: bool = False,
    inside: bool = False,
) -> base.WrapPlan:
    """Make the plan for wrapping a compiled graph.

    Args:
        team: The graph that `StateGraph.compile` or `create_agent` returned.
        annotate: Puts notes into the input of a node: `(state, notes) -> state`, a copy; by
            default a message at the end of `messages`.
        handoff: Whether a node that wrote this and chose the next node has only handed on its
            input; by default, if it wrote nothing, or called a tool `transfer_to_NAME`.
        allow: `reassign`: a node that does not come back is cancelled, and the function of another
            node is run in its place, with the input of the first.
        tools: Whether tools are agents `tool:NAME`, so that their calls are events.
        inside: Whether the nodes of graphs that are nodes are agents `GRAPH/NODE`.

    Raises:
        SettingsError: The team is no compiled state graph, or this LangGraph was not tested.
    """
    with base.importing("LangGraph", ("langgraph",), VERSIONS, extra="langgraph"):
        from langgraph.checkpoint.base import BaseCheckpointSaver

        from . import compiled_graph as graph
        from . import routes, run
        from .messages import SharedState
    can = base.allowing(allow, {"reassign"}) | CAN
    shared = SharedState(annotate or routes.as_messages, handoff or routes.is_handoff, tools)
    root = _team(team, shared, inside)
    graphs = tuple(root.graphs())
    agents = tuple(name for part in graphs for name in (part.start, *part.nodes, part.end))
    base.need_one_name(agents, base.WITHIN)

    def attach(session: base.Session) -> base.Attached:
        shared.session = session
        twin = graph.monitor(team, root)
        return base.Attached(twin, partial(graph.restore, twin))

    # A run that has ended can be taken up again only if a checkpointer has kept its state.
    can |= {"bounce"} if isinstance(team.checkpointer, BaseCheckpointSaver) else set()
    return base.WrapPlan("a LangGraph graph", agents, attach, can, partial(run.veto, graphs))


def _team(graph: Any, shared: SharedState, inside: bool, prefix: str = "") -> GraphTeam:
    """Read the structure of a graph, and with `inside` of inner graphs.

    Raises:
        SettingsError: The graph lacks what this adapter relies on.
    """
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.prebuilt import ToolNode

    from .messages import GraphTeam
    from .routes import plain

    _check(graph)
    keys = {f"{prefix}{plain(key)}": key for key in graph.nodes if not key.startswith("__")}
    nodes = {name: graph.nodes[key] for name, key in keys.items()}
    edges = {*graph.builder.edges}
    edges |= {(source, end) for sources, end in graph.builder.waiting_edges for source in sources}
    retries_all = graph.retry_policy
    # LangGraph has error handlers since 1.2.
    handlers = {name: getattr(node, "error_handler_node", None) for name, node in nodes.items()}
    within = {
        name: node.bound
        for name, node in nodes.items()
        if inside and isinstance(node.bound, CompiledStateGraph)
        if getattr(node.bound, "dig_team", None) is None  # else it is wrapped by itself
    }
    return GraphTeam(
        prefix,
        {
            name: frozenset(f"{prefix}{plain(end)}" for source, end in edges if source == key)
            for name, key in keys.items()
        },
        {_join(begin, end): frozenset(begin) for begin, end in graph.builder.waiting_edges},
        frozenset(name for name, node in nodes.items() if node.cache_policy),
        frozenset(name for name, key in keys.items() if graph.builder.nodes[key].defer),
        frozenset(name for name, node in nodes.items() if node.retry_policy or retries_all),
        {name: f"{prefix}{plain(handler)}" for name, handler in handlers.items() if handler},
        keys,
        graph,
        shared,
        {name: _team(part, shared, inside, f"{name}/") for name, part in within.items()},
        frozenset(name for name, node in nodes.items() if isinstance(node.bound, ToolNode)),
    )


GRAPH = (
    "nodes", "channels", "builder", "stream", "astream", "copy", "checkpointer", "retry_policy",
    "interrupt_before_nodes", "interrupt_after_nodes",
)  # fmt: skip
NODE = ("node", "bound", "copy", "cache_policy", "retry_policy")


def _check(team: Any) -> None:
    """Feature-test the private parts of LangGraph.

    Raises:
        SettingsError: The graph lacks what this adapter relies on.
    """
    from langgraph.graph.state import END, CompiledStateGraph

    from .routes import BRANCH

    if not isinstance(team, CompiledStateGraph):
        raise SettingsError(f"{type(team).__name__} is no compiled state graph; compile it first")
    base.need_attributes("LangGraph", (team,), GRAPH)
    base.need_attributes("LangGraph", (team.builder,), ("edges", "waiting_edges", "nodes"))
    base.need_attributes("LangGraph", team.nodes.values(), NODE)
    channels = {f"{BRANCH}{key}" for key in team.nodes if not key.startswith("__")}
    channels |= {_join(begin, end) for begin, end in team.builder.waiting_edges if end != END}
    if missing := channels - team.channels.keys():
        raise SettingsError(
            f"this LangGraph is put together in another way: no channel {min(missing)}"
        )


def _join(begin: Iterable[str], end: str) -> str:
    """The channel of a join, written by the nodes at the beginning."""
    from .routes import JOIN

    return f"{JOIN}{'+'.join(begin)}:{end}"
