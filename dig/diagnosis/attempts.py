"""Attempts: the parts of a run that try to solve a problem by one plan.

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


def attempts(run: RecordedRun) -> dict[str | None, tuple[Attempt, ...]]:
    """The attempts of a run, by the problem that they try to solve.

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
            for plan, activations in _Plans(run, problem, members).parted().items()
        )
        for problem, members in _by_problem(run).items()
    }


def _by_problem(run: RecordedRun) -> dict[str | None, list[RecordedActivation]]:
    """The activations that each problem concerns; all, in a run that is no session."""
    graph = run.graph
    if not graph.run.session:
        return {None: [*run.activations.values()]}
    found: dict[str | None, list[RecordedActivation]] = {
        event.id: [] for event in run.events.values() if event.by is None and event.is_work
    }
    for activation in run.activations.values():
        for source in graph.source_ids(graph.activation_sources(activation.id)):
            if source in found:
                found[source].append(activation)
    return found


class _Plans:
    """The plan points among the activations that a problem concerns."""

    def __init__(
        self, run: RecordedRun, problem: str | None, members: Iterable[RecordedActivation]
    ) -> None:
        """Look at the ended activations in the order in which they ended.

        Args:
            run: The run.
            problem: The event that poses the problem; ``None``: any from outside does.
            members: The activations that it concerns, in the order of their start.
        """
        self._run = run
        self._problem = problem
        self._members = {one.id: one for one in members}
        self._taken: set[str] = set()  # problems from outside that were consumed
        self._split: set[str] = set()  # work that was split
        self._ends: dict[str, int] = {}  # of the plan points
        self._latest: dict[str, str] = {}  # the latest plan point of each activation that has one
        ended = [(one.end, one) for one in self._members.values() if one.end is not None]
        for end, activation in sorted(ended, key=lambda pair: pair[0].t):
            if self._is_plan(activation):
                self._ends[activation.id] = end.t
                self._latest[activation.id] = activation.id
            else:
                self._inherit(activation.id, activation.with_fate("consume"))
        for activation in self._members.values():
            if activation.end is None:  # it works on what it sees
                self._inherit(activation.id, activation.inputs)

    def parted(self) -> dict[str | None, list[str]]:
        """The activations by plan point, in the order in which the plan points ended."""
        found: dict[str | None, list[str]] = {plan: [] for plan in self._ends} or {None: []}
        first = next(iter(found))
        for name in self._members:
            found[self._latest.get(name, first)].append(name)
        return found

    def _inherit(self, activation: str, used: Iterable[str]) -> None:
        """Give an activation the latest plan point of those that generated what it used."""
        generators = (self._run.events[event].by for event in used)
        plans = [self._latest[by] for by in generators if by in self._latest]
        if plans:
            self._latest[activation] = max(plans, key=self._ends.__getitem__)

    def _is_plan(self, activation: RecordedActivation) -> bool:
        return any([*self._reasons(activation)])  # all are asked: each takes note of it

    def _reasons(self, activation: RecordedActivation) -> Iterator[bool]:
        run = self._run
        inputs = run.inputs(activation)
        yield self._is_first(
            one.id for one in inputs if one.by is None and one.is_work and self._poses(one.id)
        )
        told = any(one.final for one in inputs) or self._read_note(activation)
        yield told and any(output.is_work for output in run.outputs(activation))
        if run.is_problem_generating(activation):
            work = {one.id for one in inputs if one.is_work}
            yield not self._split.isdisjoint(work)
            yield any(one.type == SOLUTION for one in inputs)
            self._split |= work

    def _poses(self, event: str) -> bool:
        return self._problem in (None, event)

    def _is_first(self, problems: Iterable[str]) -> bool:
        new = {*problems} - self._taken
        self._taken |= new
        return bool(new)

    def _read_note(self, activation: RecordedActivation) -> bool:
        """Whether an activation consumed a system event; one without a named fate is consumed."""
        notes = (e for e in activation.inputs if self._run.events[e].by == SYSTEM)
        return any(activation.fates.get(note, "consume") == "consume" for note in notes)


def _attempt(run: RecordedRun, name: str, plan: str | None, activations: list[str]) -> Attempt:
    made = (event for one in activations for event in run.outputs(run.activations[one]))
    finals = [event for event in made if event.final]
    accepted = [event.id for event in finals if event.accepted_t is not None]
    if accepted:
        ended = "accepted"
    elif any(event.arrivals for event in finals):
        ended = "bounced"
    else:
        ended = "no answer" if run.finish else "cut off"
    return Attempt(name, plan, tuple(activations), accepted[-1] if accepted else None, ended)
