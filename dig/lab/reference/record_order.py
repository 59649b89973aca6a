"""The activations of a stored graph in a causal order, with fitting times."""

from __future__ import annotations

from collections import defaultdict

from dig.errors import RecordError
from dig.graph.records import SYSTEM
from dig.traces.interchange.scribe import Guesses

from .reference_nodes import SourceActivation, SourceEvent, SourceGraph


def natural(name: str) -> tuple[int, str]:
    """A sort key with e9 before e10."""
    return len(name), name


class Schedule:
    """The activations of agents in an order of dependency.

    An activation depends on its agent's earlier ones, and on the generators of its inputs.

    Attributes:
        base: The earliest time in the source.
        order: The activations; `turns`: those of each agent; `place`: where each stands in it.
        start, end: When each began and ended, moved as little as the order asks for.
    """

    def __init__(self, source: SourceGraph, guesses: Guesses) -> None:
        """Find the order.

        Raises:
            RecordError: The graph contradicts itself.
        """
        self._source = source
        self._guesses = guesses
        self.base = min(source.times(), default=0.0)
        self.turns: dict[str, list[SourceActivation]] = defaultdict(list)
        self.start: dict[str, float] = {}
        self.end: dict[str, float] = {}
        self._shown: dict[str, list[SourceActivation]] = defaultdict(list)
        self._check()
        self.order = self._sort()
        self.place = {activation.id: i for i, activation in enumerate(self.order)}
        for activation in self.order:
            self._time(activation)

    def is_agents(self, event: SourceEvent) -> bool:
        """Whether an agent's activation generated an event."""
        maker = self._source.activations.get(event.by or "")
        return maker is not None and maker.is_agents

    def generation(self, event: SourceEvent) -> tuple[float, int]:
        """The generation time of an event, and the place of the activation before."""
        if self.is_agents(event) and event.by is not None:
            return self.end[event.by], self.place[event.by]
        began = [v.began for v in self._shown[event.id] if v.began is not None]
        return min([self.base if event.at is None else event.at, *began]), -1

    def receivers(self, event: SourceEvent) -> list[str]:
        """All agents that an event was sent to, delivered to or shown to."""
        recipients = dict.fromkeys([*event.recipients, *event.to, *event.delivered])
        recipients.update(dict.fromkeys(v.agent for v in self._shown[event.id]))
        return list(recipients)

    def _check(self) -> None:
        source = self._source
        for name in (*source.events, *source.activations):
            if name == SYSTEM or (name in source.events and name in source.activations):
                raise RecordError(f"the id {name[:40]!r} cannot be used, or is used for two things")
        for activation in source.activations.values():
            for event in activation.fates:
                if event not in source.events:
                    place = f"activation {activation.id[:40]!r}"
                    raise RecordError(f"{place} was shown {event[:40]!r}, which is not in the file")
                if activation.is_agents:
                    self._shown[event].append(activation)
        for source_event in source.events.values():
            if source_event.by is not None and source_event.by not in source.activations:
                self._guesses.note("an event of an activation that is not stored is from outside",
                                   source_event.id)  # fmt: skip

    def _sort(self) -> list[SourceActivation]:
        """Sort by dependency, then by the time of the end."""
        import networkx as nx

        agents = [v for v in self._source.activations.values() if v.is_agents]
        # By the end: an activation sees outputs of others only after they ended.
        agents.sort(key=lambda v: (v.ended or v.began or 0.0, natural(v.id)))
        rank = {activation.id: i for i, activation in enumerate(agents)}
        needs: nx.DiGraph[str] = nx.DiGraph()
        needs.add_nodes_from(rank)
        for activation in agents:
            turns = self.turns[activation.agent]
            makers = [self._source.events[event].by for event in activation.fates]
            # Only the latest turn: the earlier ones follow from it.
            before = [v.id for v in turns[-1:]] + [by for by in makers if by in rank]
            needs.add_edges_from((earlier, activation.id) for earlier in before)
            turns.append(activation)
        order: list[SourceActivation] = []
        try:
            # The lexicographic sort keeps the stored order wherever dependencies allow.
            for name in nx.lexicographical_topological_sort(needs, rank.__getitem__):
                order.append(agents[rank[name]])
        except nx.NetworkXUnfeasible:
            ordered = {activation.id for activation in order}
            stuck = ", ".join(v.id[:40] for v in agents if v.id not in ordered)
            reason = f"these activations depend on each other in a circle: {stuck[:200]}"
            raise RecordError(reason) from None
        return order

    def _time(self, activation: SourceActivation) -> None:
        turns = self.turns[activation.agent]
        number = turns.index(activation)
        began = activation.began if activation.began is not None else activation.ended
        if began is None:
            self._guesses.note("an activation without a time began as soon as it could",
                               activation.id)  # fmt: skip
            began = self.base
        earliest = [self.generation(self._source.events[event])[0] for event in activation.fates]
        if number:
            earliest.append(self.end[turns[number - 1].id])
        start = max([began, *earliest])
        if start > began:
            self._guesses.note(
                "an activation began later than stored, when what it was shown was there and its "
                "agent was idle", activation.id,
            )  # fmt: skip
        self.start[activation.id] = start
        self.end[activation.id] = max(
            start, start if activation.ended is None else activation.ended
        )
