"""The Dynamic Interaction Graph of a run, and the one function that changes it: `apply`.

`InteractionGraph.apply(record)` checks a record (`dig.graph.rules`) and rewrites the graph by it
(`dig.graph.rewrites`). Live monitor, reader, replay and viewer all go through it. Its data and
queries are in `dig.graph.state`. Cut-outs of the graph, and networkx, are in
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
        """Check one record and rewrite the graph by it.

        Raises:
            RuleError: The record contradicts those before it; the graph is as it was.
        """
        rules.check(self, record)
        rewrites.apply(self, record)

    def evict(
        self, keep: int, pinned: Collection[str] = (), given_up: Collection[str] | None = None
    ) -> frozenset[str]:
        """Evict all history that can change no verdict; only in a session, and between two calls.

        Numbers of events and activations change; ids do not. An evicted event cannot be named any
        more, though it may be shown for as long as an activation that saw or made it is; its id
        could be used again after that, and `sources` leaves out the answered ones.

        Args:
            keep: The number of latest records whose events and activations stay.
            pinned: Events that may be sent to other agents again; they stay with all details.
            given_up: The events from outside to give up, if another graph of this session has
                determined them; ``None``: those about which no detector waits for its time to pass.

        Returns:
            The events from outside that were given up.
        """
        return retention.evict(self, keep, pinned, given_up)

    # --- lineage and coverage ---

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

    # --- views (see dig.graph.views) ---

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
