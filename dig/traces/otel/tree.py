"""The places of spans: trace, parent, depth and beginning.

Parents follow the triggers, because viewers draw the parent tree and little else. A tree that is
too deep is unreadable, and at some thousand levels no viewer draws it: what would be too deep
stands below the root of its segment again, and its links tell where it comes from.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import compress

from dig._util.frozen import frozen
from dig.graph.graph import InteractionGraph

from .ids import Origin, segment

MOST_DEPTH = 12


@frozen
class SpanPlace:
    """The place of a span.

    Attributes:
        parent_id: The span above it; ``None`` for a root.
        segment: The segment of the run to which its trace belongs.
        depth: Its level below the root.
        steps: The length of the chain of activations that led to it, itself included.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    segment: int
    depth: int = 0
    steps: int = 0


class Tree:
    """The places of all spans of a run: four numbers an activation, a number an event."""

    def __init__(self, origin: Origin, graph: InteractionGraph, most_depth: int) -> None:
        """Begin without a span.

        Args:
            origin: The execution, from which ids follow.
            graph: The graph of the run.
            most_depth: The most levels of spans below a root.
        """
        self._origin = origin
        self._graph = graph
        self._most_depth = max(1, most_depth)
        self._segments = array("q")  # by number of activation
        self._depths = array("H")
        self._steps = array("q")
        self._began = array("q")
        self._emitted = array("q")  # by number of event
        self._roots: dict[int, SpanPlace] = {}
        self._span_id = lru_cache(maxsize=4096)(origin.activation)
        self._findings: dict[int, int] = {}  # logical time -> segment
        self._heals: dict[str, SpanPlace] = {}  # system event -> the healing that made it

    def root(self, number: int) -> SpanPlace:
        """The root of a segment."""
        root = self._roots.get(number)
        if root is None:
            ids = self._origin.trace_id(number), self._origin.root(number)
            root = self._roots[number] = SpanPlace(*ids, None, number)
        return root

    def finding(self, t: int, us: int) -> SpanPlace:
        """The place of a finding; healing may refer to findings."""
        self._findings[t] = segment(t, us)
        return self.below(self.root(self._findings[t]), self._origin.record(t))

    def heal(self, t: int, finding: int, system_event: str | None) -> tuple[SpanPlace, SpanPlace]:
        """The places of an intervention and of the finding.

        Args:
            t: The record of the intervention.
            finding: The record of the finding.
            system_event: The system event that the intervention creates, if it does.
        """
        root = self.root(self._findings.get(finding, 0))
        cause = self.below(root, self._origin.record(finding))
        place = self.below(cause, self._origin.record(t))
        if isinstance(system_event, str):  # a trace may hold anything
            self._heals[system_event] = place
        return place, cause

    def start(self, activation: str, trigger: str | None, t: int, us: int) -> SpanPlace:
        """The place of a new activation; activations come in order of start.

        Args:
            activation: Its id.
            trigger: The event that triggered it; ``None``: there is none.
            t: The logical time of its start.
            us: The wall time of its start, in microseconds.
        """
        number = segment(t, us)
        cause = self.root(number) if trigger is None else self.producer(trigger, number)
        # A parent must be in the same trace; the links lead to the other one.
        parent = cause if cause.segment == number else self.root(number)
        place = self.below(parent, self._span_id(activation), cause.steps + 1)
        self._segments.append(number)
        self._depths.append(place.depth)
        self._steps.append(place.steps)
        self._began.append(us)
        return place

    def emit(self, us: int) -> None:
        """Note the time of the latest event."""
        self._emitted.append(us)

    def since(self, name: str) -> int | None:
        """The beginning of an event or activation in microseconds, if known."""
        history = self._graph.history
        n, v = history.event(name), history.activation(name)
        if n is not None:
            return self._emitted[n]
        return None if v is None else self._began[v]

    def producer(self, event: str, number: int) -> SpanPlace:
        """The place of an event's generator; if from outside, the root of segment `number`."""
        history = self._graph.history
        generator = history.generator[self._graph.event(event).n]
        if generator >= 0:
            return self.activation(generator)
        return self._heals.get(event) or self.root(number)

    def activation(self, v: int) -> SpanPlace:
        """The place of an activation, without the parent."""
        number, span_id = self._segments[v], self._span_id(self._graph.history.activation_ids[v])
        trace_id = self.root(number).trace_id
        return SpanPlace(trace_id, span_id, None, number, self._depths[v], self._steps[v])

    def forget(self, event: str) -> None:
        """Forget an event; no agent can be shown the event any more."""
        self._heals.pop(event, None)

    def forget_evicted(self, activations: Iterable[str], events: Iterable[str]) -> None:
        """Drop evicted activations and events.

        Args:
            activations: The activations that it had before, in order of their numbers.
            events: The events.
        """
        history = self._graph.history
        stays = [*_staying(activations, history.activation_ids)]
        for numbers in (self._segments, self._depths, self._steps, self._began):
            numbers[:] = array(numbers.typecode, compress(numbers, stays))
        self._emitted[:] = array("q", compress(self._emitted, _staying(events, history.event_ids)))
        current = set(self._graph.findings)
        self._findings = {t: number for t, number in self._findings.items() if t in current}
        # Roots are made again from their numbers when they are needed.
        self._roots = {}

    def below(self, parent: SpanPlace, span_id: int, steps: int = 0) -> SpanPlace:
        """The place of a span below another; below the root, where that would be too deep."""
        if parent.depth >= self._most_depth:
            parent = self.root(parent.segment)
        trace_id, above = parent.trace_id, parent.span_id
        return SpanPlace(trace_id, span_id, above, parent.segment, parent.depth + 1, steps)


def _staying(before: Iterable[str], after: Iterable[str]) -> Iterator[bool]:
    """For each id in `before`, whether the id is in `after`; both have the same order."""
    remaining = iter(after)
    awaited = next(remaining, None)
    for name in before:
        yield name == awaited
        if name == awaited:
            awaited = next(remaining, None)
