"""The nodes of a picture: the kind of each, which decides its style, and its title."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig._util.text import name
from dig.graph.history import ACCEPTED, BY_SYSTEM
from dig.graph.records import FATES

from .palette import ANSWER, BOUNCED, FAILED, OPEN_ANSWER, did, kind_of
from .source import Source


class Nodes:
    """The kinds and titles of nodes, as the graph stood after the record at `until`."""

    def __init__(self, source: Source, until: int) -> None:
        self._source = source
        self._until = until

    def turn(self, one: str) -> str:
        """The kind of an activation: a key of `palette.TURNS`."""
        h = self._source.graph.history
        v = h.activation(one)
        assert v is not None
        has_ended = 0 <= h.t_end[v] <= self._until
        if has_ended and one in self._source.failed:
            return FAILED
        fates = {FATES[edge.fate] for edge in h.edges(v)} if has_ended else set()
        outputs = h.outputs(v)
        is_final = bool(outputs) and self._source.graph.event(h.event_ids[outputs[0]]).final
        return did(fates, len(outputs), is_final, has_ended)

    def event(self, one: str, node: Mapping[str, Any]) -> str:
        """The kind of an event: a key of `palette.EVENTS`."""
        h = self._source.graph.history
        n = h.event(one)
        assert n is not None
        kind = kind_of(node["type"], node["final"], h.generator[n] == BY_SYSTEM)
        judged = self._source.judged
        if kind != OPEN_ANSWER or (judged is not None and judged.get(one, -1) < 0):
            return kind
        if judged is not None and judged[one] > self._until:
            return kind
        if h.flags[n] & ACCEPTED:
            return ANSWER
        return BOUNCED if self._source.graph.is_bounced(one) else kind

    def title(self, one: str, node: Mapping[str, Any], kind: str) -> str:
        """A node in a line of words.

        Args:
            one: Its id.
            node: Its attributes in the view.
            kind: Its kind, from `turn` or `event`.
        """
        if node["kind"] == "event":
            sender = self._source.graph.event(one).by
            by = "outside" if sender is None else name(sender)
            return f"{name(one)}, {kind} ({name(node['type'])}) by {by}, record {node['t_gen']}"
        until = f" to {node['t_end']}" if "t_end" in node else ""
        return f"{name(one)} of {name(node['agent'])}: {kind}, records {node['t_start']}{until}"
