"""What is measured of a run: one number for each thing and each state that it could be in.

The same function measures a faulted run, its twin and the runs of a baseline, so that they can be
compared. A number is larger the more a thing is in that state; 0 means not at all, where it is not
a time. What each means is in docs/faults-verification.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dig.detectors.patterns import ERRORS
from dig.graph.records import End
from dig.tasks.simulated.parts import Range, merged

from .course import Activation, Course, Event
from .elements import lacking, length, without
from .measuring_events import elements, of_event
from .pieces import is_missing, own_cuts, part_name, pieces, solved_us

DIGITS = 6
"""Numbers are rounded to so many digits after the point, before anything is done with them."""


class Measured(NamedTuple):
    """A number.

    Attributes:
        type: The type of the thing.
        name: Which one.
        state: The state that the number is about.
        measure: What it may be compared with: numbers of the same name.
        value: The number; times are in seconds.
    """

    type: str
    name: str
    state: str
    measure: str
    value: float


def measured(
    course: Course,
    rmse: float | None = None,
    cuts: Iterable[int] = (),
    truth: Mapping[int, str] | None = None,
) -> Iterator[Measured]:
    """All that is measured of a run, rounded to `DIGITS`.

    Args:
        course: The run.
        rmse: The error of its answer, if that is known.
        cuts: Where parts begin and end, besides where the run itself cuts.
        truth: The elements of the task, as far as they are known; what it has shown, if left out.
    """
    known = elements(course) if truth is None else truth
    for row in _measured(course, rmse, cuts, known):
        yield row._replace(value=round(row.value, DIGITS))


def _measured(
    course: Course, rmse: float | None, cuts: Iterable[int], truth: Mapping[int, str]
) -> Iterator[Measured]:
    for event in course.events.values():
        for state, kind, value in of_event(course, event, truth):
            yield Measured("event", event.id, state, f"event {state}{kind}", value)
    for activation in course.activations.values():
        yield from _of_activation(course, activation)
    yield from _of_agents(course)
    for piece in pieces([*cuts, *own_cuts(course)]):
        yield from _of_part(course, piece)
    yield from _of_outcome(course, rmse)
    for pattern, count in raised(course).items():
        yield Measured("finding", pattern, "raised", f"raised {pattern}", count)


# --- activations ---


def _of_activation(course: Course, activation: Activation) -> Iterator[Measured]:
    def number(state: str, value: float, kind: str = "") -> Measured:
        measure = f"activation {state} {kind}".strip()
        return Measured("activation", activation.id, state, measure, value)

    end = activation.end
    yield number("slow", ((end.us if end else course.last.us) - activation.us) / 1e6)
    if end is None:
        return
    yield number("failed", end.error is not None)
    work = [one for one in map(course.events.__getitem__, activation.inputs) if one.work]
    taken = activation.with_fate("consume")
    passed, dropped = activation.with_fate("reroute"), activation.with_fate("discard")
    if work and end.error is None:
        did_nothing = not (taken or passed or dropped or end.outputs)
        yield number("idle", did_nothing, _before_it(course, work))
    yield number("rerouting", len(passed))
    yield number("discarding", len(dropped))
    yield number("losing", _losing(course, taken, end))
    outputs = [course.events[one] for one in end.outputs]
    final = [lacking(one.about, course.whole) for one in outputs if one.final]
    yield number("hasty", max(final, default=0.0))


def _before_it(course: Course, work: list[Event]) -> str:
    """What lies in front of an activation: work to do, all solutions, or some of them."""
    if any(event.type != "solution" for event in work):
        return "work"
    held = merged(r for event in work for r in event.about)
    return "some" if without(course.whole, held) else "all"


def _losing(course: Course, taken: list[str], end: End) -> float:
    """Which share of the elements that it consumed none of its outputs is about."""
    used = merged(r for one in taken for r in course.events[one].about)
    made = merged(r for one in end.outputs for r in course.events[one].about)
    return length(without(used, made)) / length(used) if used else 0.0


# --- agents ---


def _of_agents(course: Course) -> Iterator[Measured]:
    for agent in course.agents:
        yield Measured("agent", agent, "gone", "agent gone", agent in course.leaves)
        held = merged(r for event in course.kept_for(agent) for r in event.about)
        is_starved = not course.answer and bool(held) and bool(without(course.whole, held))
        yield Measured("agent", agent, "starved", "agent starved", is_starved)


# --- parts ---


def _of_part(course: Course, piece: Range) -> Iterator[Measured]:
    name = part_name(piece)
    yield Measured("part", name, "missing", "part missing", is_missing(course, piece))
    solved = solved_us(course, piece)
    if solved is not None:
        yield Measured("part", name, "late", "part late", solved / 1e6)


# --- the outcome ---


def _of_outcome(course: Course, rmse: float | None) -> Iterator[Measured]:
    def number(state: str, value: float) -> Measured:
        return Measured("outcome", "", state, f"outcome {state}", value)

    ended = course.finish.outcome if course.finish else None
    answer = course.answer
    yield number("timeout", ended == "timeout")
    yield number("missing", answer is None and ended != "timeout")
    yield number("incomplete", lacking(answer.about, course.whole) if answer else 0.0)
    if answer is not None and rmse is not None:
        yield number("wrong", rmse)


def raised(course: Course) -> dict[str, int]:
    """How often each pattern that is an error was raised."""
    counts = Counter(finding.pattern for finding in course.findings)
    return {pattern: counts[pattern] for pattern in ERRORS}
