"""The measurements of a run: one number for each thing and each state that it could be in.

The same function measures a faulted run, its twin and the runs of a baseline, so that they can be
compared. A number is larger the more a thing is in that state; 0 means not at all, where it is not
a time. docs/faults-verification.md says what each means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple

from dig.detectors.patterns import ERRORS
from dig.graph.records import End
from dig.tasks.simulated.parts import Range, merged

from .course import Activation, Course, Event
from .elements import common, lacking, length, without
from .subtasks import is_missing, own_cuts, part_name, pieces, solved_us

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
    """All numbers of a run, rounded to `DIGITS`.

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
        for state, kind, value in _of_event(course, event, truth):
            yield Measured("event", event.id, state, f"event {state}{kind}", value)
    for activation in course.activations.values():
        yield from _of_activation(course, activation)
    yield from _of_agents(course)
    for piece in pieces([*cuts, *own_cuts(course)]):
        yield from _of_part(course, piece)
    yield from _of_outcome(course, rmse)
    for pattern, count in raised(course).items():
        yield Measured("finding", pattern, "raised", f"raised {pattern}", count)


# --- events ---

Number = tuple[str, str, float]
"""A state, what further tells apart what may be compared, and the number."""


def _of_event(course: Course, event: Event, truth: Mapping[int, str]) -> Iterator[Number]:
    """The numbers of an event.

    Args:
        course: Its run.
        event: The event.
        truth: The elements of the task, as far as they are known.
    """
    by_type = f" {event.type}"
    if event.final:
        yield "premature", "", lacking(event.about, course.whole)
    elif event.work:
        yield "lost", by_type, event.lost_t is not None
        yield "unread", by_type, course.lies_unread(event)
        yield "delayed", "", _transit(course, event)
        yield "rerouted", by_type, len(event.reroutes)
        end = course.consumption(event)
        if end is not None and event.arrivals:
            yield "overdue", by_type, (end.us - course.us(event.arrivals[0][1])) / 1e6
    if event.sender is not None and (event.work or event.final):
        yield from _of_making(course, event, truth)


def _of_making(course: Course, event: Event, truth: Mapping[int, str]) -> Iterator[Number]:
    """The numbers of an event that an agent has generated."""
    by_type = f" {event.type}"
    yield "altered", by_type, _foreign(course, event)
    error = _miscounted(event, truth)
    if error is not None:
        yield "miscounted", f" {_level(event)}", error
    if event.work:
        yield "late", by_type, event.us / 1e6
        yield "shared", by_type, len(event.to)
        yield "duplicated", by_type, _is_double(course, event)
        if event.type == "solution":
            yield "misdirected", by_type, event.report_to not in (None, *event.to)


def _transit(course: Course, event: Event) -> float:
    """Seconds from its generation to its first arrival; to the end, if it never came."""
    if event.arrivals:
        return (course.us(event.arrivals[0][1]) - event.us) / 1e6
    return 0.0 if event.is_lost else (course.last.us - event.us) / 1e6


def _foreign(course: Course, event: Event) -> bool:
    """Whether it is about nothing, or about more than what its activation consumed."""
    activation = course.activations[event.by or ""]
    used = [r for one in activation.with_fate("consume") for r in course.events[one].about]
    return bool(used) and not (event.about and not without(event.about, merged(used)))


def _is_double(course: Course, event: Event) -> bool:
    """Whether an earlier event of its type, not behind it, is about some of the same elements."""
    behind = course.ancestors(event.id)
    earlier = takewhile(lambda other: other.id != event.id, course.events.values())
    alike = (one for one in earlier if one.type == event.type and one.work)
    return any(one.id not in behind and common(one.about, event.about) for one in alike)


def _level(event: Event) -> str:
    return "answer" if event.final else "one" if len(event.about) == 1 else "several"


def _miscounted(event: Event, truth: Mapping[int, str]) -> float | None:
    """The error of the counts of an event, in elements for each element covered.

    If all elements are known, and are values by themselves, it is the sum of the differences;
    else that between the sum of the counts and the number of elements.
    """
    counts = event.payload.get("counts") if isinstance(event.payload, dict) else None
    covered = length(event.about)
    if not covered or not isinstance(counts, dict):
        return None
    if any(type(count) not in (int, float) for count in counts.values()):
        return None
    expected = Counter(truth.get(i) for a, b in event.about for i in range(a, b))
    if None in expected:
        return abs(sum(counts.values()) - covered) / covered
    values = sorted(set(counts).union(expected), key=str)
    wrong: float = sum(abs(counts.get(value, 0) - expected[value]) for value in values)
    return wrong / covered


def elements(course: Course) -> dict[int, str]:
    """The elements that the run's raw data show, by number, where they are values themselves."""
    known: dict[int, str] = {}
    for event in course.events.values():
        data = event.payload.get("data") if isinstance(event.payload, dict) else None
        if event.type != "raw_data" or not isinstance(data, list) or len(event.about) != 1:
            continue
        if all(type(value) is int for value in data):
            known.update(zip(range(*event.about[0]), map(str, data), strict=False))
    return known


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
    """The inputs of an activation in a word: work to do, all solutions, or some of them."""
    if any(event.type != "solution" for event in work):
        return "work"
    held = merged(r for event in work for r in event.about)
    return "some" if without(course.whole, held) else "all"


def _losing(course: Course, taken: list[str], end: End) -> float:
    """The share of the consumed elements that no output is about."""
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
    """The number of findings of each pattern that is an error."""
    counts = Counter(finding.pattern for finding in course.findings)
    return {pattern: counts[pattern] for pattern in ERRORS}
