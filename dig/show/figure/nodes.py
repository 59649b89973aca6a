"""The nodes of a picture: kinds, for the style, and titles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig._util.text import name
from dig.graph.records import FATES, SYSTEM
from dig.graph.words import WORKS, deed

from . import palette
from .source import Source

_TYPES = {
    "problem": palette.PROBLEM,
    "solution": palette.SOLUTION,
    "raw_data": palette.RAW,
    "message": palette.MESSAGE,
    "notice": palette.NOTICE,
}


def turn_kind(source: Source, id: str, node: Mapping[str, Any]) -> str:
    """The kind of an activation, a key of `palette.TURNS`; of several the most productive.

    Args:
        source: The run.
        id: The activation's id.
        node: Its attributes in the view.
    """
    if "t_end" not in node:
        return WORKS
    h = source.graph.history
    v = h.activation_number(id)
    outputs = h.outputs(v)
    is_final = bool(outputs) and source.graph.event(h.event_ids[outputs[0]]).final
    fates = {FATES[edge.fate] for edge in h.edges(v)}
    return deed(fates, len(outputs), final=is_final, failed=id in source.failed)


def event_kind(source: Source, id: str, until: int) -> str:
    """The kind of an event: a key of `palette.EVENTS`.

    Args:
        source: The run.
        id: The event's id.
        until: The logical time at which the graph is drawn.
    """
    event = source.graph.event(id)
    if not event.final:
        is_note = event.by == SYSTEM
        return palette.SYSTEM_NOTE if is_note else _TYPES.get(event.type, palette.OTHER)
    if source.judged is not None and not 0 <= source.judged.get(id, -1) <= until:
        return palette.OPEN_ANSWER
    if source.graph.is_accepted(id):
        return palette.ANSWER
    return palette.BOUNCED if source.graph.is_bounced(id) else palette.OPEN_ANSWER


def title(source: Source, id: str, node: Mapping[str, Any], kind: str) -> str:
    """A node in a line of words.

    Args:
        source: The run.
        id: The node's id.
        node: Its attributes in the view.
        kind: Its kind, from `turn_kind` or `event_kind`.
    """
    if node["kind"] == "event":
        sender = source.graph.event(id).by
        by = "outside" if sender is None else name(sender)
        return f"{name(id)}, {kind} ({name(node['type'])}) by {by}, record {node['t_gen']}"
    until = f" to {node['t_end']}" if "t_end" in node else ""
    return f"{name(id)} of {name(node['agent'])}: {kind}, records {node['t_start']}{until}"
