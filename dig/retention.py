"""Retention: a session lets go of closed history that can never again change a verdict.

What may still be asked of the past is little (docs/meaning.md). An event that is open, lost or
being submitted has its roots and sources with it. What stands behind a coming answer counts only
as far as it goes back to an event from outside that is *not answered yet*; whoever has consumed
nothing of that kind, has no ancestor that has. So all that goes back to answered events alone can
go, but for a few rows: who generated what is still there, who solved it before, the roots, and
who worked last on a problem. In a run that is no session nothing is answered before its end.

An event from outside that nobody consumed, and nobody can reach any more, is *given up* once all
windows about it have passed: no answer can have it behind it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable

from .compaction import ROW, WHOLE, Ranks, Stay, compact
from .history import CONSUMED, FROM_OUTSIDE, LET_GO, History, Lineage
from .ranges import NOTHING, RangeSet, union
from .records import micros
from .rewrites import Rewrites


class Retention(Rewrites):
    """A graph that can let go of its closed history."""

    def let_go(
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
        cutoff = self.t - keep
        for event in self._live.values():
            _ = event.roots, event.sources  # some find them by a walk only when they are asked for
        over = self._let_lost_go(cutoff, pinned, given_up)
        self._renumber(compact(self.history, self._stay(cutoff, pinned)))
        self.history.whole_from = max(self.history.whole_from, cutoff)
        del self.findings[: bisect_left(self.findings, cutoff)]
        self.touched, self.ended, self.latest_answer = [], None, None
        self._seen_last, self._emitter, self._lineage = {}, -1, (NOTHING, NOTHING)
        return over

    def _let_lost_go(
        self, cutoff: int, pinned: Collection[str], told: Collection[str] | None
    ) -> frozenset[str]:
        """Give up what nobody can answer any more, and let go of the lost events of no problem."""
        window = micros(self.run.limits.oe_window_s)
        lost = {
            event.n: event
            for event in self._live.values()
            if not (event.copies or event.flight or event.id in pinned)
            and self.history.t_gen[event.n] < cutoff
            and (event.cause is None or event.us_lost + window <= self.now)
        }
        names = self.history.event_ids

        def is_over(n: int) -> bool:
            if told is not None:
                return names[n] in told
            return n in lost or self._has_passed(n, cutoff, pinned)

        given_up = self.problems.give_up(is_over)
        waiting = self.problems.waiting
        gone = [event for event in lost.values() if event.sources.isdisjoint(waiting)]
        for event in gone:
            del self._live[event.id]
        for n in (*given_up, *(event.n for event in gone)):
            self.history.flags[n] |= LET_GO  # whoever sent it on now would be heard by nobody
        return frozenset(names[n] for n in given_up)

    def _has_passed(self, n: int, cutoff: int, pinned: Collection[str]) -> bool:
        """Whether an event is closed, and was used by nobody: a notice that was not read."""
        h, name = self.history, self.history.event_ids[n]
        is_closed = name not in self._live and name not in pinned and h.t_gen[n] < cutoff
        return is_closed and not h.flags[n] & CONSUMED

    def _stay(self, cutoff: int, pinned: Collection[str]) -> Stay:
        """What stays: what is recent, and what a verdict may still ask for."""
        h = self.history
        stays = _Stays(h, cutoff, self.problems.waiting)
        stays.keep_events(event.n for event in self._live.values())
        stays.keep_events(n for n in map(h.event, pinned) if n is not None)
        stays.keep_activations(activation.n for activation in self._activations.values())
        # Whether an answer counts what its agent did before depends on its submitter's inputs.
        answers = (event.n for event in self._live.values() if event.final)
        stays.keep_activations(h.generator[n] for n in answers)
        latest = map(h.activation, self.problems.latest)
        stays.keep_rows(v for v in latest if v is not None)
        return stays.complete()

    def _renumber(self, ranks: Ranks) -> None:
        self.problems.renumber(ranks.sources)
        for event in self._live.values():
            event.roots, event.sources = ranks.lineage((event.roots, event.sources))
            event.n = ranks.events[event.n]
        for activation in self._activations.values():
            activation.n = ranks.activations[activation.n]
        for agent in self._agents.values():
            agent.lineages = {}
            for event in agent.buffer.values():
                agent.file(event)


class _Stays:
    """Works out what of a history stays."""

    def __init__(self, history: History, cutoff: int, waiting: RangeSet) -> None:
        """Begin with what happened from `cutoff` on, and what goes back to what waits."""
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

    def keep_events(self, events: Iterable[int]) -> None:
        """Keep all about some events."""
        for n in events:
            self._events[n] = WHOLE

    def keep_activations(self, activations: Iterable[int]) -> None:
        """Keep all about some activations, with the events that they saw or made."""
        h = self._history
        for v in activations:
            if v not in h.cut:
                self._activations[v] = WHOLE
                self.keep_events(h.edge_event[h.first_edge[v] : h.first_edge[v + 1]])
                self.keep_events(h.outputs(v))

    def keep_rows(self, activations: Iterable[int]) -> None:
        """Keep who some activations were, if not more."""
        for v in activations:
            self._activations[v] = self._activations[v] or ROW

    def complete(self) -> Stay:
        """What has to stay with all this: generators, solvers with their outputs, and roots."""
        h = self._history
        for n in [n for n, how in enumerate(self._events) if how == WHOLE]:
            solvers = h.solvers(n)
            self.keep_rows(solvers)
            for output in (output for v in solvers for output in h.outputs(v)):
                self._events[output] = self._events[output] or ROW
            if h.generator[n] >= 0:
                self.keep_rows([h.generator[n]])
        self._keep_roots()
        rows = (v for v, how in enumerate(self._activations) if how == ROW)
        cut = {v: self._lineages[v] for v in rows}
        return Stay(self._events, self._activations, cut)

    def _keep_roots(self) -> None:
        rows = (v for v, how in enumerate(self._activations) if how == ROW)
        roots = union({self._lineages[v][0]: None for v in rows})
        self.keep_rows([self._history.root_activations[root] for root in roots])


def _lineages(h: History) -> list[Lineage]:
    """Roots and sources of every activation, as of an event that it would generate."""
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
