"""Lineage: roots, sources, causal ancestry, and the provenance of an answer.

Live events carry their roots and sources (`dig._util.ranges`). For closed ones, which are hardly
ever asked for, they are found again by walking back through the history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from dig._util.ranges import RangeSet, union

from .history import FROM_OUTSIDE, History

PAST = 1 << 40
"""The source number that stands for all answered sources that a session has evicted."""


def ancestors(history: History, v: int) -> set[int]:
    """The activations with a causal path to activation `v`, settled ones too."""
    return _walk(history, history.inputs(v))[0]


def roots_of(history: History, n: int) -> RangeSet:
    """The roots of event `n`, as root numbers."""
    return _roots(history, [n])


def roots_of_activation(history: History, v: int) -> RangeSet:
    """The roots of an ended activation, as root numbers."""
    own = history.root_number[v]  # a root is its own and only root
    if own >= 0:
        return RangeSet.single(own)
    return history.cut[v][0] if v in history.cut else _roots(history, history.inputs(v))


def sources_of(history: History, n: int) -> RangeSet:
    """The sources of event `n`, as source numbers."""
    behind, events = _walk(history, [n])
    outside = sorted(e for e in events if history.generator[e] == FROM_OUTSIDE)
    own = RangeSet.of(bisect_left(history.source_events, e) for e in outside)
    return union([own, *(history.cut[v][1] for v in behind if v in history.cut)])


def activations_about(history: History, sources: RangeSet) -> list[int]:
    """Collect the activations with an input event of some sources, in order of start."""
    # One walk ahead: to walk back from each activation takes the square of a long conversation.
    numbers, about = {*sources}, list[int]()
    behind = bytearray(len(history.activation_ids))

    def concerns(n: int) -> bool:
        generator = history.generator[n]
        if generator == FROM_OUTSIDE:
            return bisect_left(history.source_events, n) in numbers
        return generator >= 0 and bool(behind[generator])

    for v in range(len(behind)):
        cut = history.cut.get(v)
        behind[v] = any(map(concerns, history.inputs(v))) or (
            cut is not None and not cut[1].isdisjoint(sources)
        )
        if any(concerns(edge.event) for edge in history.edges(v)):
            about.append(v)
    return about


def _roots(history: History, events: Iterable[int]) -> RangeSet:
    behind, _ = _walk(history, events)
    own = RangeSet.of(sorted(r for v in behind if (r := history.root_number[v]) >= 0))
    return union([own, *(history.cut[v][0] for v in behind if v in history.cut)])


def _walk(history: History, events: Iterable[int]) -> tuple[set[int], set[int]]:
    """Collect all activations and events with a causal path to some events, the latter included."""
    activations: set[int] = set()
    used = set(events)
    stack = [g for e in used if (g := history.generator[e]) >= 0]
    while stack:  # no recursion: a conversation may be a chain of a million activations
        v = stack.pop()
        if v not in activations:
            activations.add(v)
            inputs = history.inputs(v)
            used.update(inputs)
            stack += [
                g for e in inputs if (g := history.generator[e]) >= 0 and g not in activations
            ]
    return activations, used


class Provenance:
    """Everything behind a final event, as numbers in the graph's history.

    Attributes:
        submitter: The activation that generated the event.
        activations: A of the semantics: the submitter, its ancestors and, where memory counts,
            the earlier activations of its agent, with their ancestors.
        consumed: The events that they consumed.
        outside: The sources that came from outside.
        parts: The work that its problem-generating activations split off and none of them consumed.
    """

    def __init__(self, submitter: int, counts_memory: bool) -> None:
        """Begin with nothing; `dig.graph.coverage` walks back."""
        self.submitter = submitter
        self.counts_memory = counts_memory
        self.activations: set[int] = set()
        self.consumed: set[int] = set()
        self.outside: set[int] = set()
        self.parts: set[int] = set()

    def add(self, history: History, v: int) -> list[int]:
        """Add an activation; return the generators of the consumed events."""
        self.activations.add(v)
        inputs = history.inputs(v)
        if 0 < len(inputs) < history.output_count[v]:
            self.parts.update(
                e for e in history.outputs(v) if history.is_work(e) and e not in self.consumed
            )
        before = []
        for e in inputs:
            if e not in self.consumed:
                self.consumed.add(e)
                self.parts.discard(e)
                generator = history.generator[e]
                if generator >= 0:
                    before.append(generator)
                elif generator == FROM_OUTSIDE:
                    self.outside.add(e)
        return before

    def take_over(self, earlier: Provenance) -> None:
        """Add the provenance of an earlier answer; `earlier` must not be used afterwards."""
        for part in ("activations", "consumed", "outside", "parts"):
            theirs: set[int] = getattr(earlier, part)
            theirs |= getattr(self, part)
            setattr(self, part, theirs)
        self.parts -= self.consumed
