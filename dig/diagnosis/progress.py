"""Progress of a run: milestones of any run, by the structure of its graph alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dig._util.text import name, names
from dig.graph.records import Run
from dig.show.document import Evidence
from dig.tasks.milestones import NO_ANSWER, Milestone, milestone
from dig.traces.run import RecordedEvent, RecordedRun


def share_reached(milestones: Sequence[Milestone], good: bool) -> float:
    """Return the share of reached milestones; below 1 for a bad run.

    Args:
        milestones: The milestones of the run; one at least.
        good: Whether the run is good.
    """
    reached = sum(milestone.reached for milestone in milestones)
    return (reached if good else min(reached, len(milestones) - 1)) / len(milestones)


def any_milestones(run: RecordedRun, good: bool, reason: str) -> tuple[Milestone, ...]:
    """List the five milestones of any run.

    Args:
        run: The run.
        good: Whether the run is good.
        reason: The lack of the run, or the test.
    """
    finals = [event for event in run.events.values() if event.final]
    last = run.last.t
    accepted = [(e, e.accepted_t) for e in finals if e.accepted_t is not None]
    posed = [event for event in run.events.values() if event.by is None and event.is_work]
    ends = ((event, run.consumption(event)) for event in posed)
    unconsumed = [event.id for event in _needed_work(run, posed) if not event.consumed_by]
    lacks = f"not consumed: {names(unconsumed)}" if unconsumed else "no problem came from outside"
    return (
        milestone(
            "an agent took the problem on",
            _first((end.t, f"{name(event.id)} was consumed") for event, end in ends if end),
            Evidence(last, "no problem from outside was consumed"),
        ),
        milestone(
            "no work that an answer needs is left",
            Evidence(last, "all of it was consumed") if posed and not unconsumed else None,
            Evidence(last, lacks),
        ),
        milestone(
            "an answer was submitted",
            _first((event.t, f"{name(event.id)} is final") for event in finals),
            Evidence(last, "no final event was generated"),
        ),
        milestone(
            "an answer was accepted",
            _first((t, f"{name(event.id)} was accepted") for event, t in accepted),
            Evidence(last, NO_ANSWER),
        ),
        Milestone("the run is good", good, (Evidence(last, reason),)),
    )


def _first(records: Iterable[tuple[int, str]]) -> Evidence | None:
    return next((Evidence(t, says) for t, says in records), None)


def _needed_work(run: RecordedRun, posed: Sequence[RecordedEvent]) -> Iterator[RecordedEvent]:
    """Yield the work behind answers: problems from outside, and work split off on the way.

    Args:
        run: The run. Without an accepted answer its last final event counts; without one all its
            activations count as being behind an answer.
        posed: The problems from outside.
    """
    yield from posed
    finals = [event for event in run.events.values() if event.final]
    finals = [event for event in finals if event.accepted_t is not None] or finals[-1:]
    for activation in _ancestors(run, finals) if finals else run.activations:
        act = run.activations[activation]
        if run.is_problem_generating(act):
            yield from (event for event in run.outputs(act) if event.is_work)


def _ancestors(run: RecordedRun, finals: Iterable[RecordedEvent]) -> dict[str, None]:
    """The activations with a causal path to a final event; with memory, earlier ones too."""
    first = run.records[0]
    remembers = isinstance(first, Run) and first.memory
    behind: dict[str, None] = {}
    stack = [event.by for event in finals if event.by is not None]
    for submitter in map(run.activations.__getitem__, [*stack]):
        if remembers or not run.inputs(submitter):  # an answer out of nothing is one from memory
            stack += [
                act.id
                for act in run.activations.values()
                if act.agent == submitter.agent and act.end and act.end.t < submitter.t
            ]
    while stack:
        activation = stack.pop()
        if activation not in behind:
            behind[activation] = None
            used = run.inputs(run.activations[activation])
            stack += [event.by for event in used if event.by is not None]
    return behind
