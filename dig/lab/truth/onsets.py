"""The states of each type, and the record at which a state becomes visible.

What is there in the faulted run is visible where it is; what is not there, or comes late, is from
the moment on at which the twin has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from dig.tasks.number_ranges import named_range
from dig.traces.run import RecordedEvent, RecordedRun

from .matching import Matching


def _as_generated(runs: Matching, name: str, same: str | None) -> int:
    return runs.faulted.events[name].t


def _when_lost(runs: Matching, name: str, same: str | None) -> int:
    t = runs.faulted.orphaned_t(name)
    return runs.faulted.events[name].t if t is None else t


def _when_due(runs: Matching, name: str, same: str | None) -> int:
    """When the twin's counterpart was generated."""
    return runs.faulted.at(runs.twin.events[same].us) if same else 0


def _when_left(runs: Matching, name: str, same: str | None) -> int:
    """When the twin had consumed the counterpart, measured from the first arrival.

    Without one: the end of the first activation that left it where it was.
    """
    event = runs.faulted.events[name]
    first = event.arrivals[0][1] if event.arrivals else event.t
    used = _consumed_after(runs.twin, runs.twin.events[same]) if same else None
    if used is not None:
        # Nobody can see that an event is left unread before it has arrived.
        return max(first, runs.faulted.at(runs.faulted.times[first] + used))
    ends = (
        activation.end.t
        for activation in runs.faulted.activations.values()
        if activation.end and name in activation.inputs
    )
    return next(ends, first)


def _consumed_after(run: RecordedRun, event: RecordedEvent) -> int | None:
    """Microseconds from the first arrival of an event to the consumption."""
    end = run.consumption(event)
    return end.us - run.times[event.arrivals[0][1]] if end and event.arrivals else None


def _when_passed_on(runs: Matching, name: str, same: str | None) -> int:
    """The first reroute beyond those of the counterpart."""
    reroutes = runs.faulted.events[name].reroutes
    usual = len(runs.twin.events[same].reroutes) if same else 0
    # The twin may have had more of them; then the last one.
    return reroutes[min(usual, len(reroutes) - 1)]


def _at_the_end(runs: Matching, name: str, same: str | None) -> int:
    end = runs.faulted.activations[name].end
    return end.t if end else runs.faulted.last.t


def _when_made(runs: Matching, name: str, same: str | None) -> int:
    """When the last output of the activation was generated."""
    outputs = runs.faulted.activations[name].outputs
    return max(
        [_at_the_end(runs, name, same), *(runs.faulted.events[output].t for output in outputs)]
    )


def _when_overrun(runs: Matching, name: str, same: str | None) -> int:
    """When the activation ran longer than the counterpart; without a counterpart, the start."""
    activation = runs.faulted.activations[name]
    other = runs.twin.activations[same] if same else None
    if other is None or other.end is None:
        return activation.t
    return max(activation.t, runs.faulted.at(activation.us + other.end.us - other.us))


def _when_starved(runs: Matching, name: str, same: str | None) -> int:
    """The later of: the agent's last end, the last start of the counterpart."""
    mine = [
        activation.end.t
        for activation in runs.faulted.activations.values()
        if activation.agent == name and activation.end
    ]
    twins = [
        activation.us for activation in runs.twin.activations.values() if activation.agent == name
    ]
    return max([*mine[-1:], *(runs.faulted.at(us) for us in twins[-1:])], default=0)


def _when_missed(runs: Matching, name: str, same: str | None) -> int:
    """When the twin had solved the part, or the last solution was gone; never after the answer.

    If a solution is there in the end, then with the answer, which does not have it.
    """
    answer = runs.faulted_parts.answer
    parts = runs.faulted_parts
    losses = [parts.gone_t(event) for event in parts.solutions(named_range(name))]
    # A solution is there in the end, so only the answer leaves the part out.
    if answer is not None and None in losses:
        return answer.t
    since = max([_when_part_due(runs, name, same), *(t for t in losses if t is not None)])
    return since if answer is None else min(since, answer.t)


def _when_part_due(runs: Matching, name: str, same: str | None) -> int:
    solved = runs.twin_parts.solved_us(named_range(name))
    return runs.faulted.last.t if solved is None else runs.faulted.at(solved)


def _when_answered(runs: Matching, name: str, same: str | None) -> int:
    answer = runs.faulted_parts.answer
    return answer.t if answer else runs.faulted.last.t


Onset = Callable[[Matching, str, str | None], int]
"""The record at which a thing of the faulted run is first seen in a state; told its counterpart."""

_ROWS: tuple[tuple[str, str, Onset], ...] = (
    # type, its states, when they are first seen
    ("event", "lost", _when_lost),
    ("event", "unread overdue", _when_left),
    ("event", "late", _when_due),
    ("event", "rerouted", _when_passed_on),
    ("event", "delayed altered miscounted misdirected shared duplicated premature", _as_generated),
    ("activation", "slow", _when_overrun),
    ("activation", "failed idle rerouting discarding", _at_the_end),
    ("activation", "losing hasty", _when_made),
    ("agent", "gone", lambda runs, name, same: runs.faulted.leaves[name]),
    ("agent", "starved", _when_starved),
    ("part", "missing", _when_missed),
    ("part", "late", _when_part_due),
    ("outcome", "timeout missing", lambda runs, name, same: runs.faulted.last.t),
    ("outcome", "incomplete wrong", _when_answered),
    ("finding", "raised", lambda runs, name, same: int(name)),
)

ONSETS: Mapping[tuple[str, str], Onset] = MappingProxyType(
    {(of, state): when for of, states, when in _ROWS for state in states.split()}
)
"""The states of each type, and when each is first seen."""
