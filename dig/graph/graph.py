"""The Dynamic Interaction Graph of a run; `apply` is the one function for changes.

`InteractionGraph.apply(record)` checks a record (`dig.graph.rules`) and rewrites the graph by it
(`dig.graph.rewrites`). Live monitor, reader, replay and viewer all go through it. Its data and
queries are in `dig.graph.graph_state`. Cut-outs of the graph, and networkx, are in
`dig.graph.views`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from dig._util.ranges import NOTHING, RangeSet, union

from . import retention
from .coverage import provenance, unconsumed_work
from .graph_state import GraphState
from .lineage import PAST, activations_about, ancestors, roots_of, roots_of_activation
from .records import KINDS, Record
from .rewrites import STEPS
from .rules import check_moment
from .views import GraphView, graph_html

_STEPS = {kind: (*steps, KINDS.get(kind, 0)) for kind, steps in STEPS.items()}
"""Of each kind of record its rule, its rewrite, and its flag in `changed`."""


class InteractionGraph(GraphState):
    """The graph of one run: feed records, ask for the state.

    Its attributes are those of `GraphState`; only `apply` and `evict` change them.
    """

    @classmethod
    def of(cls, records: Iterable[Record]) -> InteractionGraph:
        """Build the graph from some records.

        Raises:
            RuleError: A record contradicts those before it.
        """
        graph = cls()
        for record in records:
            graph.apply(record)
        return graph

    def apply(self, record: Record) -> None:
        """Check one record and rewrite the graph accordingly.

        Raises:
            RuleError: The record contradicts those before it; the graph is as it was.
        """
        check, rewrite, flag = _STEPS[type(record)]
        if (
            record.t != self.t + 1
            or record.us < self.now
            or self.is_restricted
            or (self.awaited and record.kind != "emit")
        ):
            check_moment(self, record)
        subject = check(self, record)
        # New lists, not cleared ones: a detector may have kept the old ones.
        self.touched = []
        self.changed = flag
        self.problems.touched = {}
        self.now = record.us
        rewrite(self, record, subject)
        if self.problems.touched:
            self.changed |= self.problems.look(record.us)
        self.t = record.t

    def evict(
        self, keep: int, pinned: Collection[str] = (), given_up: Collection[str] | None = None
    ) -> frozenset[str]:
        """Evict all history without effect on a verdict; only in a session, and between two calls.

        Numbers of events and activations change; ids do not. An evicted event cannot be named any
        more, though it may be shown for as long as an activation that saw or made it is; its id
        could be used again after that, and `sources` leaves out the answered ones.

        Args:
            keep: The number of latest records whose events and activations stay.
            pinned: Events that may be sent to other agents again, which stay with all details;
                and activations that may be spoken of, of which the agent and the times stay.
            given_up: The events from outside to give up, if another graph of this session has
                determined them; ``None``: those about which no detector waits for its time to pass.

        Returns:
            The events from outside that were given up.
        """
        return retention.evict(self, keep, pinned, given_up)

    # --- lineage and coverage ---

    def roots(self, name: str) -> frozenset[str]:
        """The roots of an event or of an ended activation, by id."""
        return frozenset(self.root(number) for number in self.root_numbers(name))

    def source_ids(self, numbers: Iterable[int]) -> list[str]:
        """The events from outside with some source numbers (`EventState.sources`), by id."""
        h = self.history
        return [h.event_ids[h.source_events[number]] for number in numbers if number != PAST]

    def renumber_sources(self, sources: RangeSet) -> RangeSet:
        """The new numbers of some sources after the latest eviction, for a detector's `forget`."""
        return retention.renumber_sources(sources, self.source_rank)

    def unanswered_sources(self, sources: RangeSet, most: int | None = None) -> list[str]:
        """The unanswered sources among some, by id, as generated.

        Args:
            sources: Source numbers.
            most: The number of sources at most; ``None``: all.
        """
        unanswered = self.problems.unanswered_sources(sources)
        bounds = unanswered.ranges
        if len(bounds) == 2 and bounds[0] + 1 == bounds[1]:  # the usual case
            return [self.history.event_ids[self.history.source_events[bounds[0]]]]
        return self.source_ids(islice(unanswered, most))

    def are_apart(self, a: RangeSet, b: RangeSet) -> bool:
        """Whether two events with the sources `a` and `b` are about different problems.

        All problems of which a session has let go count as one.
        """
        return bool(a and b) and a.isdisjoint(b)

    def sources_about(self, subject: Any) -> RangeSet | None:
        """The sources of the event or activation in a finding's subject, as source numbers.

        Args:
            subject: The subject of the finding; the detector of a user may have put anything there.

        Returns:
            The sources of its event or activation, none if the graph does not know it (any more);
            ``None``: the subject names neither, so the finding is about the whole run.
        """
        named = subject if isinstance(subject, Mapping) else {}
        event, activation = named.get("event"), named.get("activation")
        if isinstance(event, str):
            return self.event(event).sources if self.knows(event) else NOTHING
        return self.activation_sources(activation) if isinstance(activation, str) else None

    def activation_sources(self, name: str) -> RangeSet:
        """The sources of all input events of an activation; none for an unknown activation."""
        activation = self.ended if self.ended.id == name else self.running.get(name)
        if activation is not None:
            inputs = activation.inputs
            return inputs[0].sources if len(inputs) == 1 else union(e.sources for e in inputs)
        v = self.history.activation(name)
        edges = () if v is None else self.history.edges(v)
        return union([self.sources_of(edge.event) for edge in edges])

    def concerns(self, activation: str, sources: RangeSet | None) -> bool:
        """Whether an activation is about some sources; ``None``: about the run as a whole."""
        return sources is None or not self.activation_sources(activation).isdisjoint(sources)

    def activations_about(self, sources: RangeSet | None) -> list[int]:
        """Number the activations about some sources, in order of start; ``None``: all."""
        h = self.history
        if sources is None:
            return [*range(len(h.activation_ids))]
        return activations_about(h, sources)

    def root_numbers(self, name: str) -> RangeSet:
        """The roots of an event or of an ended activation, as numbers for `root`."""
        event = self.live.get(name) or self.ended.by_id.get(name)
        if event is not None:
            return event.roots
        n = self.history.event(name)
        if n is not None:
            return roots_of(self.history, n)
        return roots_of_activation(self.history, self.history.activation_number(name))

    def root(self, number: int) -> str:
        """The root activation with a given root number."""
        return self.history.activation_ids[self.history.root_activations[number]]

    def sources(self, event: str) -> frozenset[str]:
        """The environment events with a causal path to an event, by id."""
        return frozenset(self.source_ids(self.sources_of(self.history.event_number(event))))

    def ancestors(self, activation: str) -> frozenset[str]:
        """The activations with a causal path to an activation, by id."""
        h = self.history
        numbers = ancestors(h, h.activation_number(activation))
        return frozenset(h.activation_ids[v] for v in numbers)

    def uncovered_work(self, event: str) -> list[str]:
        """The needed work lost on the way to a final event, just generated, in order."""
        h = self.history
        work = unconsumed_work(self, provenance(self, h.event_number(event)))
        return [h.event_ids[e] for e in work if not self.is_open(e)]

    def asked_problems(self, event: str) -> tuple[str, ...]:
        """The events from outside that a final event is the first to answer, as generated."""
        behind = provenance(self, self.history.event_number(event))
        return tuple(self.source_ids(self.problems.asked_sources(behind)))

    # --- views (see dig.graph.views) ---

    def at(self, t: int) -> GraphView:
        """View the graph after the record at logical time `t`."""
        return GraphView(self, until=t)

    def cleaned(self) -> GraphView:
        """View the productive edges and their nodes."""
        return GraphView(self, productive=True)

    def to_networkx(self) -> Any:
        """The whole graph as a `networkx.DiGraph`, built on demand."""
        return GraphView(self).to_networkx()

    def _repr_html_(self) -> str:
        return graph_html(self)
