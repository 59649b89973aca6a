"""Attempts: parts of a run, each to solve a problem by a plan.

Activations overlap, so an attempt is a set of them, and several may go on at the same time. It
begins with a *plan point*: an activation that

- is the first to consume a problem from outside,
- or consumes a returned answer or a system event, and generates work,
- or generates more than it consumes, and consumes a solution, or work that was split before.

An activation belongs to the attempt of the latest plan point among itself and its ancestors;
without one to the first attempt. In a session each problem from outside has attempts of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from dig.graph.records import SYSTEM
from dig.show.document import Attempt
from dig.tasks.accounting import SOLUTION
from dig.traces.run import RecordedActivation, RecordedRun


def find_attempts(run: RecordedRun) -> dict[str | None, tuple[Attempt, ...]]:
    """Find the attempts of a run, by problem.

    Args:
        run: The run, from its first record on.

    Returns:
        For each problem from outside of a session those of the activations that it concerns; a run
        that is no session has one entry, ``None``. There is an attempt at least in each.
    """
    numbers = count(1)
    return {
        problem: tuple(
            _attempt(run, f"p{next(numbers)}", plan, activations)
            for plan, activations in _Plans(run, problem, members).split().items()
        )
        for problem, members in _by_problem(run).items()
    }


def _by_problem(run: RecordedRun) -> dict[str | None, list[RecordedActivation]]:
    """The activations of each problem; all, in a run without a session."""
    graph = run.graph
    if not graph.run.session:
        return {None: [*run.activations.values()]}
    by_problem: dict[str | None, list[RecordedActivation]] = {
        event.id: [] for event in run.events.values() if event.by is None and event.is_work
    }
    for activation in run.activations.values():
        for source in graph.source_ids(graph.activation_sources(activation.id)):
            if source in by_problem:
                by_problem[source].append(activation)
    return by_problem


class _Plans:
    """The plan points among the activations of a problem."""

    def __init__(
        self, run: RecordedRun, problem: str | None, members: Iterable[RecordedActivation]
    ) -> None:
        """Look at the ended activations, the first to end first.

        Args:
            run: The run.
            problem: The event that poses the problem; ``None``: any from outside does.
            members: The activations that it concerns, in the order of their start.
        """
        self._run = run
        self._problem = problem
        self._members = {act.id: act for act in members}
        self._consumed: set[str] = set()  # problems from outside
        self._split: set[str] = set()  # work
        self._ends: dict[str, int] = {}  # of the plan points
        self._latest: dict[str, str] = {}  # the latest plan point of each activation that has one
        ended = [(act.end, act) for act in self._members.values() if act.end is not None]
        for end, activation in sorted(ended, key=lambda pair: pair[0].t):
            if self._is_plan(activation):
                self._ends[activation.id] = end.t
                self._latest[activation.id] = activation.id
            else:
                self._inherit(activation.id, activation.with_fate("consume"))
        for activation in self._members.values():
            if activation.end is None:  # it works on what it sees
                self._inherit(activation.id, activation.inputs)

    def split(self) -> dict[str | None, list[str]]:
        """Return the activations by plan point, in the order of the plan points' ends."""
        parts: dict[str | None, list[str]] = {plan: [] for plan in self._ends} or {None: []}
        first = next(iter(parts))
        for name in self._members:
            parts[self._latest.get(name, first)].append(name)
        return parts

    def _inherit(self, activation: str, used: Iterable[str]) -> None:
        """Give an activation the latest plan point among the generators of its inputs."""
        generators = (self._run.events[event].by for event in used)
        plans = [self._latest[by] for by in generators if by in self._latest]
        if plans:
            # Work out of several plans belongs to the last of them.
            self._latest[activation] = max(plans, key=self._ends.__getitem__)

    def _is_plan(self, activation: RecordedActivation) -> bool:
        return any([*self._reasons(activation)])  # all are asked: each takes note of it

    def _reasons(self, activation: RecordedActivation) -> Iterator[bool]:
        run = self._run
        inputs = run.inputs(activation)
        problems = {
            event.id
            for event in inputs
            if event.by is None and event.is_work and self._problem in (None, event.id)
        }
        yield not problems <= self._consumed
        self._consumed |= problems
        # A system event without a named fate is consumed.
        notes = (e for e in activation.inputs if run.events[e].by == SYSTEM)
        has_note = any(activation.fates.get(note, "consume") == "consume" for note in notes)
        has_news = has_note or any(event.final for event in inputs)
        yield has_news and any(output.is_work for output in run.outputs(activation))
        if run.is_problem_generating(activation):
            work = {event.id for event in inputs if event.is_work}
            yield not self._split.isdisjoint(work)
            yield any(event.type == SOLUTION for event in inputs)
            self._split |= work


def _attempt(run: RecordedRun, name: str, plan: str | None, activations: list[str]) -> Attempt:
    outputs = (event for act in activations for event in run.outputs(run.activations[act]))
    finals = [event for event in outputs if event.final]
    accepted = [event.id for event in finals if event.accepted_t is not None]
    if accepted:
        ended = "accepted"
    elif any(event.arrivals for event in finals):
        ended = "bounced"
    else:
        ended = "no answer" if run.finish else "cut off"
    return Attempt(name, plan, tuple(activations), accepted[-1] if accepted else None, ended)
