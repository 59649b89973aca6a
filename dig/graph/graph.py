"""The Dynamic Interaction Graph of a run, and the one function that changes it: `apply`.

`InteractionGraph.apply(record)` checks a record (`dig.graph.rules`) and rewrites the graph by it
(`dig.graph.rewrites`). Live monitor, reader, replay and viewer all go through it. What it holds and
what one may ask it is in `dig.graph.state`. Cut-outs of the graph, and networkx, are in
`dig.graph.views`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from . import retention, rewrites, rules
from .coverage import provenance, uncovered
from .lineage import ancestors, sources_of
from .records import Record
from .state import GraphState
from .views import GraphView, graph_html


class InteractionGraph(GraphState):
    """The graph of one run: feed it records, ask it for its state.

    Its attributes are those of `GraphState`; only `apply` and `evict` change them.
    """

    @classmethod
    def of(cls, records: Iterable[Record]) -> InteractionGraph:
        """The graph that some records lead to.

        Raises:
            RuleError: A record contradicts those before it.
        """
        graph = cls()
        for record in records:
            graph.apply(record)
        return graph

    def apply(self, record: Record) -> None:
        """Check one record and rewrite the graph by it; the only way in which it changes.

        Raises:
            RuleError: The record contradicts those before it; the graph is as it was.
        """
        rules.check(self, record)
        rewrites.apply(self, record)

    def evict(
        self, keep: int, pinned: Collection[str] = (), given_up: Collection[str] | None = None
    ) -> frozenset[str]:
        """Let go of all that can change no verdict; only of a session, and between two calls.

        Numbers of events and activations change; ids do not. What is gone cannot be named any
        more, though it may be shown for as long as an activation that saw or made it is; its id
        could be used again after that, and `sources` leaves out what was answered.

        Args:
            keep: What happened in so many latest records stays.
            pinned: Events that somebody may send to others again, so that all about them stays.
            given_up: The events from outside that are given up, if another graph of this session
                has told it; ``None``: those about which no detector waits for its time to pass.

        Returns:
            The events from outside that were given up.
        """
        return retention.evict(self, keep, pinned, given_up)

    # --- what lies behind an event ---

    def sources(self, event: str) -> frozenset[str]:
        """The environment events with a causal path to an event, by id."""
        h = self.history
        live = self.live.get(event)
        sources = live.sources if live is not None else sources_of(h, h.event_number(event))
        return frozenset(h.event_ids[h.source_events[s]] for s in sources)

    def ancestors(self, activation: str) -> frozenset[str]:
        """The activations with a causal path to an activation, by id."""
        h = self.history
        found = ancestors(h, h.activation_number(activation))
        return frozenset(h.activation_ids[v] for v in found)

    def uncovered(self, event: str) -> list[str]:
        """The needed work that a final event, just generated, lost on the way, as generated."""
        h, n = self.history, self.history.event_number(event)
        return [h.event_ids[e] for e in uncovered(self, n, provenance(self, n))]

    def asked(self, event: str) -> tuple[str, ...]:
        """The events from outside that a final event answers and no other did, as generated."""
        h = self.history
        sources = self.problems.asked(provenance(self, h.event_number(event)))
        return tuple(h.event_ids[h.source_events[s]] for s in sources)

    # --- pictures of it (see dig.graph.views) ---

    def at(self, t: int) -> GraphView:
        """The graph as it stood after the record at logical time `t`."""
        return GraphView(self, until=t)

    def cleaned(self) -> GraphView:
        """The productive edges and the nodes that they touch."""
        return GraphView(self, productive=True)

    def to_networkx(self) -> Any:
        """The whole graph as a `networkx.DiGraph`, built on demand."""
        return GraphView(self).to_networkx()

    def _repr_html_(self) -> str:
        return graph_html(self)
