"""The Dynamic Interaction Graph of a run, and the one function that changes it: `apply`.

`InteractionGraph.apply(record)` checks a record (`dig.rules`) and rewrites the graph by it
(`dig.rewrites`). Live monitor, reader, replay and viewer all go through it. What can still change
is kept as objects (`dig.state`), closed history as numbers in arrays (`dig.history`). Cut-outs of
the graph, and networkx, are in `dig.views`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from . import rules
from .history import ACCEPTED, BOUNCED, LET_GO
from .lineage import ancestors, answer, roots_of, roots_of_activation, sources_of, uncovered
from .ranges import RangeSet
from .records import Record
from .retention import Retention
from .state import Activation, Agent, Event, by_number

if TYPE_CHECKING:
    from .views import GraphView


class InteractionGraph(Retention):
    """The graph of one run: feed it records, ask it for its state.

    Its attributes are those of `Rewrites`; nobody else may set them. `let_go` is for sessions that
    last (`dig.retention`).
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
        self.rewrite(record)

    # --- the state ---

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The present agents by name, in the order in which they came."""
        return MappingProxyType(self._agents)

    @property
    def activations(self) -> Mapping[str, Activation]:
        """The activations in progress by id, in order of their start."""
        return MappingProxyType(self._activations)

    @property
    def latest_source(self) -> str:
        """The event that came from outside last."""
        return self.history.event_ids[self.history.source_events[-1]]

    @property
    def event_count(self) -> int:
        """How many events there have been, with those that are let go of."""
        return self.history.gone_events + len(self.history.event_ids)

    @property
    def activation_count(self) -> int:
        """How many activations there have been, with those that are let go of."""
        return self.history.gone_activations + len(self.history.activation_ids)

    @property
    def has_let_go(self) -> bool:
        """Whether something that has happened is not in the history any more."""
        h = self.history
        return bool(h.gone_events or h.gone_activations or h.cut)

    def open_events(self) -> list[Event]:
        """R(t): work that nobody consumed and that somebody can still reach, as generated."""
        return sorted(self._open.values(), key=by_number)

    def orphans(self) -> dict[str, str]:
        """Work that nobody consumed and nobody can reach, with its cause, as generated."""
        lost = [e for e in self._live.values() if e.cause is not None]
        return {e.id: e.cause or "" for e in sorted(lost, key=by_number)}

    def flying(self) -> list[Event]:
        """The events of any kind that are on their way to somebody, as generated."""
        return sorted((e for e in self._live.values() if e.flight), key=by_number)

    def knows(self, event: str) -> bool:
        """Whether there is an event with this id, and the graph has not let go of it."""
        n = self.history.event(event)
        return n is not None and not self.history.flags[n] & LET_GO

    def is_open(self, n: int) -> bool:
        """Whether the event with this number is open."""
        return self.history.event_ids[n] in self._open

    def is_accepted(self, event: str) -> bool:
        """Whether an event is a final one that was accepted."""
        return bool(self._flags(event) & ACCEPTED)

    def is_bounced(self, event: str) -> bool:
        """Whether an event is a final one that was delivered to an agent."""
        return bool(self._flags(event) & BOUNCED)

    def roots(self, name: str) -> frozenset[str]:
        """The roots of an event or of an ended activation, by id."""
        return frozenset(self.root(number) for number in self.root_numbers(name))

    def root_numbers(self, name: str) -> RangeSet:
        """The roots of an event or of an ended activation, as numbers for `root`."""
        event = self._live.get(name) or self._seen_last.get(name)
        if event is not None:
            return event.roots
        n = self.history.event(name)
        if n is not None:
            return roots_of(self.history, n)
        return roots_of_activation(self.history, self._activation(name))

    def root(self, number: int) -> str:
        """The activation that is the root with this number."""
        return self.history.activation_ids[self.history.root_activations[number]]

    def sources(self, event: str) -> frozenset[str]:
        """The environment events with a causal path to an event, by id."""
        h = self.history
        live = self._live.get(event)
        sources = live.sources if live is not None else sources_of(h, self._number(event))
        return frozenset(h.event_ids[h.source_events[s]] for s in sources)

    def ancestors(self, activation: str) -> frozenset[str]:
        """The activations with a causal path to an activation, by id."""
        found = ancestors(self.history, self._activation(activation))
        return frozenset(self.history.activation_ids[v] for v in found)

    def uncovered(self, event: str) -> list[str]:
        """The needed work that a final event, just generated, lost on the way, as generated."""
        n = self._number(event)
        return [self.history.event_ids[e] for e in uncovered(self, n, answer(self, n))]

    def asked(self, event: str) -> tuple[str, ...]:
        """The events from outside that a final event answers and no other did, as generated."""
        h = self.history
        sources = self.problems.asked(answer(self, self._number(event)))
        return tuple(h.event_ids[h.source_events[s]] for s in sources)

    @property
    def emitter(self) -> str:
        """The activation that ended last: whose outputs are awaited, if any are."""
        return self.history.activation_ids[self._emitter]

    @property
    def sole_output(self) -> bool:
        """Whether the activation that ended last generates exactly one event."""
        return self.history.output_count[self._emitter] == 1

    # --- pictures of it (see dig.views) ---

    def at(self, t: int) -> GraphView:
        """The graph as it stood after the record at logical time `t`."""
        from .views import GraphView

        return GraphView(self, until=t)

    def cleaned(self) -> GraphView:
        """The productive edges and the nodes that they touch."""
        from .views import GraphView

        return GraphView(self, productive=True)

    def to_networkx(self) -> Any:
        """The whole graph as a `networkx.DiGraph`, built on demand."""
        from .views import GraphView

        return GraphView(self).to_networkx()

    def _repr_html_(self) -> str:
        from .notebook import graph_html

        return graph_html(self)

    def _number(self, event: str) -> int:
        n = self.history.event(event)
        if n is None:
            raise KeyError(event)
        return n

    def _activation(self, name: str) -> int:
        v = self.history.activation(name)
        if v is None:
            raise KeyError(name)
        return v

    def _flags(self, event: str) -> int:
        return self.history.flags[self._number(event)]
