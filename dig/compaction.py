"""Compaction: a history without what it lets go of, numbered anew in the same order.

Arrays cannot have holes, so what stays moves together. It costs time in proportion to what was
there, nearly all of it inside of `compress` and `map`. What is to stay, `dig.retention` decides.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress

from .history import SHARDS, History, Lineage, Names
from .ranges import RangeSet

GONE, ROW, WHOLE = 0, 1, 2
"""How much stays. Of an event: nothing, its number and name, all. Of an activation: nothing, who
and when, all, with its edges."""


@dataclass
class Stay:
    """What of a history stays.

    Attributes:
        events: For each event GONE, ROW or WHOLE; ids of those that are but a ROW are free again.
        activations: The same for activations.
        cut: The lineage of each activation that loses its edges.
    """

    events: bytearray
    activations: bytearray
    cut: dict[int, Lineage]


class Ranks:
    """New numbers by old ones; of what is gone, that of what comes next."""

    def __init__(self, history: History, stay: Stay) -> None:
        """Count what stays."""
        self.events = _rank(map(bool, stay.events))
        self.activations = _rank(map(bool, stay.activations))
        self.roots = _rank(bool(stay.activations[v]) for v in history.root_activations)
        self.sources = _rank(bool(stay.events[n]) for n in history.source_events)
        self._known: dict[tuple[RangeSet, bool], RangeSet] = {}

    def lineage(self, lineage: Lineage) -> Lineage:
        """Roots and sources with their new numbers; sets that were one object are one again."""
        roots, sources = lineage
        return self._renumbered(roots, True), self._renumbered(sources, False)

    def _renumbered(self, numbers: RangeSet, are_roots: bool) -> RangeSet:
        key = (numbers, are_roots)
        if key not in self._known:
            self._known[key] = numbers.renumbered(self.roots if are_roots else self.sources)
        return self._known[key]


def compact(history: History, stay: Stay) -> Ranks:
    """Let go of all else, and number anew what stays."""
    ranks = Ranks(history, stay)
    history.gone_events += stay.events.count(GONE)
    history.gone_activations += stay.activations.count(GONE)
    history.cut = {ranks.activations[v]: ranks.lineage(one) for v, one in stay.cut.items()}
    _edges(history, stay, ranks)  # it asks for numbers that the others replace
    _ended_by(history, stay, ranks)
    _activations(history, stay, ranks)
    _events(history, stay, ranks)
    _codes(history, stay)
    history.forget_sightings()
    return ranks


def _rank(stays: Iterable[bool]) -> list[int]:
    return list(accumulate(stays, initial=0))


def _edges(h: History, stay: Stay, ranks: Ranks) -> None:
    first, events, fates = array("i", [0]), array("i"), array("b")
    for v, how in enumerate(stay.activations):
        if how == WHOLE:
            span = slice(h.first_edge[v], h.first_edge[v + 1])
            events.extend(map(ranks.events.__getitem__, h.edge_event[span]))
            fates.extend(h.edge_fate[span])
        if how:
            first.append(len(events))
    h.first_edge, h.edge_event, h.edge_fate = first, events, fates


def _ended_by(h: History, stay: Stay, ranks: Ranks) -> None:
    """Only what may stand behind an answer is looked for among what an agent did before."""
    kept = {}
    for agent, ended in h.ended_by.items():
        own = [ranks.activations[v] for v in ended if stay.activations[v] == WHOLE]
        if own:
            kept[h.agent_names[agent]] = array("i", own)
    h.agent_of, h.agent_names = _table(compress(h.agent_of, stay.activations), h.agent_names)
    h.agents = {name: code for code, name in enumerate(h.agent_names)}
    h.ended_by = {h.agents[name]: own for name, own in kept.items()}


def _activations(h: History, stay: Stay, ranks: Ranks) -> None:
    stays, first, count = stay.activations, h.first_output, h.output_count
    ends = [min(a + n, len(stay.events)) for a, n in zip(first, count, strict=True)]
    spans = list(compress(zip(first, ends, strict=True), stays))
    h.first_output = array("i", [ranks.events[a] for a, _ in spans])
    h.output_count = array("i", [ranks.events[b] - ranks.events[a] for a, b in spans])
    h.activation_ids = Names(compress(h.activation_ids, stays))
    h.t_start = array("i", compress(h.t_start, stays))
    h.t_end = array("i", compress(h.t_end, stays))
    h.settled = bytearray(compress(h.settled, stays))
    roots = compress(h.root_number, stays)
    h.root_number = array("i", [r if r < 0 else ranks.roots[r] for r in roots])
    kept_roots = [v for v in h.root_activations if stays[v]]
    h.root_activations = array("i", map(ranks.activations.__getitem__, kept_roots))


def _events(h: History, stay: Stay, ranks: Ranks) -> None:
    stays, renamed = stay.events, ranks.activations
    h.event_ids = Names(compress(h.event_ids, stays))
    h.generator = array("i", [g if g < 0 else renamed[g] for g in compress(h.generator, stays)])
    h.t_gen = array("i", compress(h.t_gen, stays))
    h.flags = bytearray(compress(h.flags, stays))
    h.type_of, h.type_names = _table(compress(h.type_of, stays), h.type_names)
    h.types = {name: code for code, name in enumerate(h.type_names)}
    kept_sources = [n for n in h.source_events if stays[n]]
    h.source_events = array("i", map(ranks.events.__getitem__, kept_sources))
    solvers = zip(h.first_solver, stays, strict=True)
    h.first_solver = array(
        "i", [v if v < 0 or how == ROW else renamed[v] for v, how in solvers if how]
    )
    h.further_solvers = {
        ranks.events[n]: [renamed[v] for v in further]
        for n, further in h.further_solvers.items()
        if stays[n] == WHOLE
    }


def _codes(h: History, stay: Stay) -> None:
    h.codes = [{} for _ in range(SHARDS)]
    hows = filter(None, stay.events)
    for n, (name, how) in enumerate(zip(h.event_ids, hows, strict=True)):
        if how == WHOLE:
            h.codes[hash(name) % SHARDS][name] = n << 1
    for v, name in enumerate(h.activation_ids):
        h.codes[hash(name) % SHARDS][name] = v << 1 | 1


def _table(codes: Iterable[int], names: Sequence[str]) -> tuple[array[int], list[str]]:
    """Codes for names of a table, in a table that only has those that are used."""
    old = list(codes)
    new = {code: place for place, code in enumerate(dict.fromkeys(old))}
    return array("i", map(new.__getitem__, old)), [names[code] for code in new]
