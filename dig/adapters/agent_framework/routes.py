"""Where edges lead: what can be said before they are asked, and what they have chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agent_framework import FanInEdgeGroup, WorkflowMessage

Takers = tuple[str, ...]


def is_join(edges: Any) -> bool:
    """Whether a group of edges waits for all its sources."""
    return isinstance(edges._edge_group, FanInEdgeGroup)


def can_take(edges: Any, message: WorkflowMessage) -> Takers:
    """The executors that a group of edges can lead a message to, whatever its conditions say."""
    probe = replace(message, data=[message.data]) if is_join(edges) else message
    targets = dict.fromkeys(edge.target_id for edge in edges._edge_group.edges)
    return tuple(
        target
        for target in targets
        if message.target_id in (None, "", target) and edges._can_handle(target, probe)
    )


def foreseen(edges: Any, message: WorkflowMessage) -> Takers | None:
    """Whom a group of edges will give a message to; ``None``: code of the user decides that."""
    takers = can_take(edges, message)
    return None if takers and decides(edges) else takers


def decides(edges: Any) -> bool:
    """Whether a group of edges has conditions, or a function that selects."""
    group = edges._edge_group
    has_selection = getattr(edges, "_selection_func", None) is not None
    return has_selection or any(edge.has_condition for edge in group.edges)


def chosen(edges: Any, message: WorkflowMessage, selected: Iterable[str]) -> Takers:
    """Whom a group of edges gives a message to, once its function has selected."""
    takers = can_take(edges, message)
    return tuple(target for target in dict.fromkeys(selected) if target in takers)
