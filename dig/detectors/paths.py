"""Causal paths as proof of a finding, and the state of events in a sentence.

All of it describes the graph as it stood when the finding was raised, however much it has grown
since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dig._util.html import Hop
from dig._util.text import cut, name
from dig.graph.graph import InteractionGraph
from dig.graph.history import CONSUME
from dig.graph.records import FATES, FateName

from .finding import Finding, Path

MOST_PATHS = 3
MOST_STEPS = 9
MOST_NODES = 200
GONE = "the session has let go of what became of"
Proof = tuple[str, tuple[Path, ...]]
"""Sentences beyond the description of a finding, and the paths that prove the finding."""

_FATES = dict(zip(FATES, ("consumed", "delayed", "rerouted", "discarded"), strict=True))


class PathFinder:
    """Finds paths in a graph as of the moment of a finding."""

    def __init__(self, graph: InteractionGraph, finding: Finding) -> None:
        """Take a graph of at least the finding's time."""
        self.graph = graph
        self._history = graph.history
        self._until = finding.t

    def path_to(self, *ends: str, to_root: bool = False) -> Path:
        """A causal path from outside to the first of some nodes, and on through the others.

        Only the last 200 nodes of a longer path are kept.

        Args:
            *ends: An event or activation, then nodes that are known to follow it.
            to_root: Begin at a root activation of the first node, not outside.
        """
        before, is_whole = self._back(ends[0], to_root)
        nodes = [*before, *ends]
        shown_nodes = nodes if len(nodes) <= MOST_STEPS else [*nodes[:3], *nodes[4 - MOST_STEPS :]]
        shown = list(self._step_texts(shown_nodes))
        if len(shown_nodes) < len(nodes):
            shown.insert(3, f"({len(nodes) - len(shown_nodes)} more)")
        # Three dots say that the beginning is cut or evicted.
        text = " -> ".join(shown if is_whole else ["...", *shown])
        return Path(tuple(nodes), text, tuple(map(self._hop, shown_nodes)))

    def _hop(self, node: str) -> Hop:
        h = self._history
        n, v = h.event(node), h.activation(node)
        agent = h.agent(v) if v is not None else None if n is None else h.sender(n)
        return Hop(node, agent or "outside", v is None)

    def to_all(self, nodes: Iterable[str]) -> tuple[Path, ...]:
        """Find a path to each of the first few nodes, by `to_last_seen`."""
        return tuple(self.to_last_seen(node) for node in list(nodes)[:MOST_PATHS])

    def to_last_seen(self, node: str) -> Path:
        """Find a path to a node and, for an event, on to the last activation with the event."""
        viewer = self._last_to_see(node)
        return self.path_to(node, *([] if viewer is None else [viewer]))

    def seen_by(self, event: str) -> list[str]:
        """The activations with an event among the inputs, in order of their start."""
        h, n = self._history, self._history.event(event)
        viewers = () if n is None else h.sightings(n)
        return [h.activation_ids[v] for v in viewers if h.t_start[v] <= self._until]

    def _last_to_see(self, event: str) -> str | None:
        """The latest activation with an event among the inputs."""
        h, n = self._history, self._history.event(event)
        viewers = () if n is None else h.sightings(n)
        # Viewers are in order of their start, and the graph may have grown since the finding.
        at = bisect_right(viewers, self._until, key=h.t_start.__getitem__)
        return h.activation_ids[viewers[at - 1]] if at else None

    def latest_about(self, subject: Any) -> str | None:
        """The latest activation about the event of a subject, or of the run; ``None``: none."""
        numbers = self.graph.activations_about(self.graph.sources_about(subject))
        at = bisect_right(numbers, self._until, key=self._history.t_start.__getitem__)
        return self._history.activation_ids[numbers[at - 1]] if at else None

    def fate(self, event: str, activation: str) -> FateName | None:
        """The fate of an event in an activation; ``None`` if the activation had not ended."""
        h, n, v = self._history, self._history.event(event), self._history.activation(activation)
        if n is None or v is None or not 0 <= h.t_end[v] <= self._until:
            return None
        return next((FATES[fate] for e, fate in h.edges(v) if e == n and fate >= 0), None)

    def last_seen(self, event: str) -> str:
        """The last known state of an event."""
        viewer = self._last_to_see(event)
        if viewer is None:
            h, n = self._history, self._history.event(event)
            is_known = n is not None and h.t_gen[n] >= h.whole_from
            return f"{'nobody has seen' if is_known else GONE} {name(event)}{' yet' * is_known}"
        fate = self.fate(event, viewer)
        agent = self._actor(viewer)
        if fate is None:
            return f"{name(event)} is in front of {agent}"
        return f"{name(event)} was {_FATES[fate]} by {agent}"

    def last_seen_of(self, events: Sequence[str]) -> str:
        """The last known state of some events, in a sentence."""
        first = [self.last_seen(event) for event in events[:MOST_PATHS]]
        says = cut(first, "; ", most=MOST_PATHS, of=len(events)) + "."
        return says.replace("nobody", "Nobody", 1) if says.startswith("nobody has") else says

    def _back(self, end: str, to_root: bool) -> tuple[list[str], bool]:
        """The nodes before a node, from outside or a root; and whether the path is whole.

        A very long path is cut at its beginning, so that a finding does not cost a walk through
        the whole history; so is a path whose beginning a session has evicted.
        """
        h = self._history
        nodes: list[str] = []
        n, v = h.event(end), h.activation(end)
        if n is None and v is None:
            return nodes, False
        while n is not None or v is not None:
            # A path from a long run would cost a walk through the whole history for each finding.
            if len(nodes) > MOST_NODES or v in h.cut:
                return nodes[::-1], False
            if v is not None:
                if not 0 <= h.t_end[v] <= self._until or (to_root and h.root_number[v] >= 0):
                    break
                n, v = self._input(v, to_root), None
                if n is not None:
                    nodes.append(h.event_ids[n])
            else:
                assert n is not None
                v, n = h.generator[n], None
                if v < 0:
                    break
                nodes.append(h.activation_ids[v])
        return nodes[::-1], True

    def _input(self, v: int, has_lineage: bool) -> int | None:
        """The first consumed event of an activation; with `has_lineage`, of events with roots."""
        h = self._history
        for n in h.inputs(v):
            g = h.generator[n]
            if not has_lineage or (g >= 0 and (h.inputs(g) or (g in h.cut and h.cut[g][0]))):
                return n
        return None

    def _step_texts(self, nodes: Iterable[str]) -> Iterator[str]:
        event = ""
        for node in nodes:
            if self._history.activation(node) is None:
                event = node
                yield name(node)
            else:
                fate = self.fate(event, node)
                did = f" ({fate})" if fate not in (None, FATES[CONSUME]) else ""
                yield self._actor(node) + did

    def _actor(self, activation: str) -> str:
        v = self._history.activation(activation)
        return f"{name(activation)} of {name(self._history.agent(v))}" if v is not None else "?"
