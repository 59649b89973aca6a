"""Retention: a session evicts closed history that has no effect on later verdicts.

Later verdicts ask little about the past (docs/meaning.md). An event that is open, lost or being
submitted has its roots and sources with it. Of the provenance of a coming answer, only the part
counts that goes back to an event from outside that is *not answered yet*; if an activation has
consumed nothing of that kind, its ancestors have not either. So history that goes back to answered
events alone is evicted, except for a few rows: the generators of events that stay, their earlier
solvers, the roots, and the activations that worked last on a problem. A run that is no session
evicts nothing.

An event from outside that no agent consumed or can reach any more is *given up* once all
windows about it have passed: it cannot be in the provenance of any answer. So is one whose request
has failed, when nothing is going on about it any more: it counts for no answer.

Arrays cannot have holes, so the remaining rows move together (`_compact`). It takes time in
proportion to the rows before, nearly all of it inside of `compress` and `map`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress

from dig._util.ranges import NOTHING, RangeSet, union

from .graph_state import NO_ACTIVATION, GraphState
from .history import CONSUMED, EVICTED, FROM_OUTSIDE, Codes, History, Lineage, Names
from .lineage import PAST
from .records import micros

_ONLY_PAST = RangeSet.single(PAST)

MOST_FINDINGS = 1_000
"""The number of latest findings that an intervention may still be about."""

MOST_SOURCES = 1_000
"""The number of answered events from outside that live events are still told apart by, the latest
ones. So a conversation that goes on over any number of problems keeps memory flat."""

GONE, ROW, WHOLE = 0, 1, 2
"""The kept part. Of an event: nothing, its number and name, all. Of an activation: nothing, its
agent and times, all, with its edges."""


def evict(
    state: GraphState,
    keep: int,
    pinned: Collection[str] = (),
    given_up: Collection[str] | None = None,
) -> frozenset[str]:
    """Evict closed history; see `InteractionGraph.evict` for arguments and result."""
    cutoff = state.t - keep
    for event in state.live.values():
        _ = event.roots, event.sources  # some find them by a walk only when they are asked for
    # Before anything moves: the walks above, and the choice of rows, need the old numbers.
    over = _let_lost_go(state, cutoff, pinned, given_up)
    ranks = _compact(state.history, _stay(state, cutoff, pinned))
    _renumber(state, ranks)
    state.source_rank = ranks.sources
    state.history.whole_from = max(state.history.whole_from, cutoff)
    del state.findings[:-MOST_FINDINGS]
    # All of these hold old numbers, or objects of evicted history.
    state.touched, state.latest_provenance = [], None
    state.ended, state.lineage = NO_ACTIVATION, (NOTHING, NOTHING)
    return over


def _let_lost_go(
    state: GraphState, cutoff: int, pinned: Collection[str], determined: Collection[str] | None
) -> frozenset[str]:
    """Give up events without a possible answer, and evict lost events without a problem."""
    window = micros(state.run.limits.oe_window_s)
    unreachable = {
        event.n: event
        for event in state.live.values()
        if not (event.copies or event.flight or event.id in pinned)
        and state.history.t_gen[event.n] < cutoff
        and (event.cause is None or event.us_lost + window <= state.now)
    }
    names = state.history.event_ids

    def is_over(n: int) -> bool:
        if determined is not None:
            return names[n] in determined
        # A closed event that no agent consumed is an unread notice.
        is_unread = not state.history.flags[n] & CONSUMED and _is_closed(state, n, cutoff, pinned)
        return n in unreachable or is_unread

    def is_old(n: int) -> bool:
        return (
            names[n] in determined
            if determined is not None
            else _is_closed(state, n, cutoff, pinned)
        )

    given_up = state.problems.give_up(is_over, is_old)
    waiting = state.problems.waiting
    evicted = [event for event in unreachable.values() if event.sources.isdisjoint(waiting)]
    for event in evicted:
        del state.live[event.id]
    for n in (*given_up, *(event.n for event in evicted)):
        state.history.flags[n] |= EVICTED  # `knows` is false from now on
    return frozenset(names[n] for n in given_up)


def _is_closed(state: GraphState, n: int, cutoff: int, pinned: Collection[str]) -> bool:
    """Whether an event is closed, and old enough to be evicted."""
    h, name = state.history, state.history.event_ids[n]
    return name not in state.live and name not in pinned and h.t_gen[n] < cutoff


def _stay(state: GraphState, cutoff: int, pinned: Collection[str]) -> _Stay:
    """Determine the remaining rows: recent ones, and those with an effect on verdicts."""
    h = state.history
    stays = _Stays(h, cutoff, state.problems.waiting)
    stays.keep_events(event.n for event in state.live.values())
    stays.keep_events(n for n in map(h.event, pinned) if n is not None)
    stays.keep_rows(v for v in map(h.activation, pinned) if v is not None)
    stays.keep_activations(activation.n for activation in state.running.values())
    # The inputs of its generator tell for which agents work was made that is lost, and whether an
    # answer counts what its agent did before.
    unconsumed = [event.n for event in state.live.values() if event.final or not event.consumed]
    stays.keep_activations(h.generator[n] for n in unconsumed if h.generator[n] >= 0)
    latest = map(h.activation, state.problems.latest)
    stays.keep_rows(v for v in latest if v is not None)
    stays.keep_sources(union({event.sources: None for event in state.live.values()}))
    return stays.complete()


def _renumber(state: GraphState, ranks: _Ranks) -> None:
    state.problems.renumber(ranks.sources)
    for event in state.live.values():
        event.roots, event.sources = ranks.lineage((event.roots, event.sources))
        event.n = ranks.events[event.n]
    for activation in state.running.values():
        activation.n = ranks.activations[activation.n]
    for agent in state.present.values():
        # Filed by ranges of roots and sources, which have changed.
        agent.lineages, agent.lone = {}, None
        for event in agent.buffer.values():
            if event.roots.ranges:
                agent.file(event)


# --- the rows that stay ---------------------------------------------------------------------------


class _Stays:
    """Determines the remaining rows of a history."""

    def __init__(self, history: History, cutoff: int, waiting: RangeSet) -> None:
        """Begin with the rows from `cutoff` on, and all rows of unanswered events."""
        h = self._history = history
        self._lineages = list(_lineages(h))
        self._events = bytearray(len(h.generator))
        self._activations = bytearray(len(h.agent_of))
        first = bisect_left(h.t_gen, cutoff)
        self.keep_events(range(first, len(self._events)))
        self.keep_events(h.source_events[source] for source in waiting)
        self.keep_activations(
            v
            for v, (_, sources) in enumerate(self._lineages)
            if h.t_end[v] >= cutoff or h.t_start[v] >= cutoff or not sources.isdisjoint(waiting)
        )
        # A turn that was cut off has consumed nothing; it is about what it saw.
        self.keep_activations(
            v
            for v, end in enumerate(h.t_end)
            if end < 0
            and any(not self._sources(edge.event).isdisjoint(waiting) for edge in h.edges(v))
        )

    def _sources(self, n: int) -> RangeSet:
        """The sources of an event, as source numbers."""
        h = self._history
        if h.generator[n] == FROM_OUTSIDE:
            return RangeSet.single(bisect_left(h.source_events, n))
        return self._lineages[h.generator[n]][1] if h.generator[n] >= 0 else NOTHING

    def keep_events(self, events: Iterable[int]) -> None:
        """Keep all about some events."""
        for n in events:
            self._events[n] = WHOLE

    def keep_activations(self, activations: Iterable[int]) -> None:
        """Keep some activations whole, with inputs and outputs."""
        h = self._history
        for v in activations:
            if v not in h.cut:
                self._activations[v] = WHOLE
                self.keep_events(h.edge_event[h.first_edge[v] : h.first_edge[v + 1]])
                self.keep_events(h.outputs(v))

    def keep_rows(self, activations: Iterable[int]) -> None:
        """Keep at least the row (agent and times) of some activations."""
        for v in activations:
            self._activations[v] = self._activations[v] or ROW

    def keep_sources(self, sources: RangeSet) -> None:
        """Keep at least the numbers of live events' sources, of many the latest."""
        for source in [source for source in sources if source != PAST][-MOST_SOURCES:]:
            n = self._history.source_events[source]
            self._events[n] = self._events[n] or ROW

    def complete(self) -> _Stay:
        """Add the rows referred to by others: generators, solvers, their outputs, and roots."""
        h = self._history
        for n in [n for n, extent in enumerate(self._events) if extent == WHOLE]:
            solvers = h.solvers(n)
            self.keep_rows(solvers)
            for output in (output for v in solvers for output in h.outputs(v)):
                self._events[output] = self._events[output] or ROW
            if h.generator[n] >= 0:
                self.keep_rows([h.generator[n]])
        rows = (v for v, extent in enumerate(self._activations) if extent == ROW)
        roots = union({self._lineages[v][0]: None for v in rows})
        self.keep_rows([h.root_activations[root] for root in roots])
        rows = (v for v, extent in enumerate(self._activations) if extent == ROW)
        cut = {v: self._lineages[v] for v in rows}
        return _Stay(self._events, self._activations, cut)


def _lineages(h: History) -> list[Lineage]:
    """Roots and sources of every activation, as for a new output of the activation."""
    lineages: list[Lineage] = []
    numbers = {n: source for source, n in enumerate(h.source_events)}
    for v in range(len(h.agent_of)):
        lineages.append(h.cut.get(v) or _lineage(h, v, lineages, numbers))
    return lineages


def _lineage(h: History, v: int, lineages: list[Lineage], numbers: dict[int, int]) -> Lineage:
    inputs, generator = h.inputs(v), h.generator
    behind = [lineages[generator[n]] for n in inputs if generator[n] >= 0]
    own = [RangeSet.single(numbers[n]) for n in inputs if generator[n] == FROM_OUTSIDE]
    root = h.root_number[v]
    roots = RangeSet.single(root) if root >= 0 else union(roots for roots, _ in behind)
    return roots, union([*own, *(sources for _, sources in behind)])


# --- compaction -----------------------------------------------------------------------------------


@dataclass
class _Stay:
    """The remaining rows of a history.

    Attributes:
        events: For each event GONE, ROW or WHOLE; ids of those that are but a ROW are free again.
        activations: The same for activations.
        cut: The lineage of each activation that loses its edges.
    """

    events: bytearray
    activations: bytearray
    cut: dict[int, Lineage]


class _Ranks:
    """New numbers by old ones; an evicted row has the number of the next remaining row."""

    def __init__(self, history: History, stay: _Stay) -> None:
        """Count what stays."""
        self.events = _rank(map(bool, stay.events))
        self.activations = _rank(map(bool, stay.activations))
        self.roots = _rank(bool(stay.activations[v]) for v in history.root_activations)
        self.sources = _rank(bool(stay.events[n]) for n in history.source_events)
        self._new_sets: dict[tuple[RangeSet, bool], RangeSet] = {}

    def lineage(self, lineage: Lineage) -> Lineage:
        """Renumber roots and sources; equal sets become one object again."""
        roots, sources = lineage
        return self._renumber_set(roots, True), self._renumber_set(sources, False)

    def _renumber_set(self, numbers: RangeSet, are_roots: bool) -> RangeSet:
        key = (numbers, are_roots)  # so equal sets are one object, as `union` relies on
        if key not in self._new_sets:
            if are_roots:
                self._new_sets[key] = numbers.renumber(self.roots)
            else:
                self._new_sets[key] = renumber_sources(numbers, self.sources)
        return self._new_sets[key]


def renumber_sources(sources: RangeSet, rank: Sequence[int]) -> RangeSet:
    """Replace source numbers; evicted sources become `PAST`.

    Args:
        sources: Their old numbers.
        rank: For each old number, the count of those below it that stay.
    """
    remaining = sources.minus(_ONLY_PAST).renumber(rank)
    return remaining.union(_ONLY_PAST) if len(remaining) < len(sources) else remaining


def _compact(history: History, stay: _Stay) -> _Ranks:
    """Evict all other rows, and number the remaining ones anew."""
    ranks = _Ranks(history, stay)
    history.gone_events += stay.events.count(GONE)
    history.gone_activations += stay.activations.count(GONE)
    history.cut = {ranks.activations[v]: ranks.lineage(lineage) for v, lineage in stay.cut.items()}
    _edges(history, stay, ranks)  # it asks for numbers that the others replace
    _ended_by(history, stay, ranks)
    _activations(history, stay, ranks)
    _events(history, stay, ranks)
    _codes(history, stay)
    history.forget_sightings()
    return ranks


def _rank(stays: Iterable[bool]) -> list[int]:
    return list(accumulate(stays, initial=0))


def _edges(h: History, stay: _Stay, ranks: _Ranks) -> None:
    first, events, fates = array("i", [0]), array("i"), array("b")
    for v, extent in enumerate(stay.activations):
        if extent == WHOLE:
            span = slice(h.first_edge[v], h.first_edge[v + 1])
            events.extend(map(ranks.events.__getitem__, h.edge_event[span]))
            fates.extend(h.edge_fate[span])
        if extent:
            first.append(len(events))
    h.first_edge, h.edge_event, h.edge_fate = first, events, fates


def _ended_by(h: History, stay: _Stay, ranks: _Ranks) -> None:
    """Keep only whole activations here: no other can be in the provenance of an answer."""
    by_agent = {}
    for agent, ended in h.ended_by.items():
        own = [ranks.activations[v] for v in ended if stay.activations[v] == WHOLE]
        if own:
            by_agent[h.agents.names[agent]] = array("i", own)
    h.agent_of, h.agents = _table(compress(h.agent_of, stay.activations), h.agents.names)
    h.ended_by.clear()
    h.ended_by.update((h.agents[name], own) for name, own in by_agent.items())


def _activations(h: History, stay: _Stay, ranks: _Ranks) -> None:
    stays, first, count = stay.activations, h.first_output, h.output_count
    ends = [min(a + n, len(stay.events)) for a, n in zip(first, count, strict=True)]
    spans = list(compress(zip(first, ends, strict=True), stays))
    h.first_output = array("i", [ranks.events[a] for a, _ in spans])
    h.output_count = array("i", [ranks.events[b] - ranks.events[a] for a, b in spans])
    h.activation_ids = Names(compress(h.activation_ids, stays))
    h.t_start = array("i", compress(h.t_start, stays))
    h.t_end = array("i", compress(h.t_end, stays))
    h.settled = bytearray(compress(h.settled, stays))
    h.failed = bytearray(compress(h.failed, stays))
    roots = compress(h.root_number, stays)
    h.root_number = array("i", [r if r < 0 else ranks.roots[r] for r in roots])
    kept_roots = [v for v in h.root_activations if stays[v]]
    h.root_activations = array("i", map(ranks.activations.__getitem__, kept_roots))


def _events(h: History, stay: _Stay, ranks: _Ranks) -> None:
    stays, renamed = stay.events, ranks.activations
    h.event_ids = Names(compress(h.event_ids, stays))
    h.generator = array("i", [g if g < 0 else renamed[g] for g in compress(h.generator, stays)])
    h.t_gen = array("i", compress(h.t_gen, stays))
    h.flags = bytearray(compress(h.flags, stays))
    h.type_of, h.types = _table(compress(h.type_of, stays), h.types.names)
    kept_sources = [n for n in h.source_events if stays[n]]
    h.source_events = array("i", map(ranks.events.__getitem__, kept_sources))
    solvers = zip(h.first_solver, stays, strict=True)
    h.first_solver = array(
        "i", [v if v < 0 or extent == ROW else renamed[v] for v, extent in solvers if extent]
    )
    h.further_solvers = {
        ranks.events[n]: [renamed[v] for v in further]
        for n, further in h.further_solvers.items()
        if stays[n] == WHOLE
    }


def _codes(h: History, stay: _Stay) -> None:
    h.forget_ids()
    hows = filter(None, stay.events)
    for n, (name, extent) in enumerate(zip(h.event_ids, hows, strict=True)):
        if extent == WHOLE:
            h.add_code(name, n << 1)
    for v, name in enumerate(h.activation_ids):
        h.add_code(name, v << 1 | 1)


def _table(codes: Iterable[int], names: Sequence[str]) -> tuple[array[int], Codes]:
    """The codes of some rows in a table without unused names, and that table."""
    old = list(codes)
    new = {code: place for place, code in enumerate(dict.fromkeys(old))}
    return array("i", map(new.__getitem__, old)), Codes(names[code] for code in new)
