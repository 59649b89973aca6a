"""What is measured of a run: one number for each thing and each state that it could be in.

The same function measures a faulted run, its twin and the runs of a baseline, so that they can be
compared. A number is larger the more a thing is in that state; 0 means not at all, where it is not
a time. What each means is in docs/faults-verification.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

from dig.records import End
from dig.tasks.parts import Range, merged, missing

from .course import Activation, Course, Event, Ranges, common, length

ERRORS = ("ET", "MC", "OE", "DL")
"""The patterns that are errors."""


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
    """All that is measured of a run.

    Args:
        course: The run.
        rmse: The error of its answer, if that is known.
        cuts: Where parts begin and end, besides where the run itself cuts.
        truth: The elements of the task, as far as they are known; what it has shown, if left out.
    """
    truth = elements(course) if truth is None else truth
    for event in course.events.values():
        yield from _of_event(course, event, truth)
    for activation in course.activations.values():
        yield from _of_activation(course, activation)
    yield from _of_agents(course)
    for piece in pieces([*cuts, *own_cuts(course)]):
        yield from _of_part(course, piece)
    yield from _of_outcome(course, rmse)
    for pattern, count in raised(course).items():
        yield Measured("finding", pattern, "raised", f"raised {pattern}", count)


# --- events ---


def _of_event(course: Course, event: Event, truth: Mapping[int, str]) -> Iterator[Measured]:
    def number(state: str, value: float, *, by_type: bool = True) -> Measured:
        measure = f"event {state} {event.type}" if by_type else f"event {state}"
        return Measured("event", event.id, state, measure, value)

    if event.final:
        yield number("premature", 1 - _share(event.about, course.whole), by_type=False)
    elif event.work:
        yield number("lost", event.lost_t is not None)
        yield number("unread", course.lies_unread(event))
        yield number("delayed", _transit(course, event), by_type=False)
        yield number("rerouted", len(event.reroutes))
        end = course.consumption(event)
        if end is not None and event.arrivals:
            yield number("overdue", (end.us - course.us(event.arrivals[0][1])) / 1e6)
    if event.sender is None or not (event.work or event.final):
        return
    yield number("altered", _foreign(course, event))
    error = _miscounted(event, truth)
    if error is not None:
        yield Measured("event", event.id, "miscounted", f"event miscounted {_level(event)}", error)
    if event.work:
        yield number("late", event.us / 1e6)
        yield number("shared", len(event.to))
        yield number("duplicated", is_double(course, event))
        if event.type == "solution":
            yield number("misdirected", report_to(event) not in (None, *event.to))


def _transit(course: Course, event: Event) -> float:
    """Seconds from its generation to its first arrival; to the end, if it never came."""
    if event.arrivals:
        return (course.us(event.arrivals[0][1]) - event.us) / 1e6
    return 0.0 if event.is_lost else (course.last.us - event.us) / 1e6


def _foreign(course: Course, event: Event) -> bool:
    """Whether it is about nothing, or about more than what its activation consumed."""
    activation = course.activations[event.by or ""]
    used = [r for one in activation.with_fate("consume") for r in course.events[one].about]
    return bool(used) and not (event.about and not _without(event.about, merged(used)))


def is_double(course: Course, event: Event) -> bool:
    """Whether an earlier event of its type, not behind it, is about some of the same elements."""
    behind = course.ancestors(event.id)
    earlier = takewhile(lambda other: other.id != event.id, course.events.values())
    alike = (one for one in earlier if one.type == event.type and one.work)
    return any(one.id not in behind and common(one.about, event.about) for one in alike)


def _level(event: Event) -> str:
    return "answer" if event.final else "one" if len(event.about) == 1 else "several"


def report_to(event: Event) -> Any:
    """Who was to be told what comes of an event."""
    return event.payload.get("report_to") if isinstance(event.payload, dict) else None


def _miscounted(event: Event, truth: Mapping[int, str]) -> float | None:
    """How far counts are from what was to be counted, in elements for each element covered.

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
    final = [1 - _share(one.about, course.whole) for one in outputs if one.final]
    yield number("hasty", max(final, default=0.0))


def _before_it(course: Course, work: list[Event]) -> str:
    """What lies in front of an activation: work to do, all solutions, or some of them."""
    if any(event.type != "solution" for event in work):
        return "work"
    held = merged(r for event in work for r in event.about)
    return "some" if _without(course.whole, held) else "all"


def _losing(course: Course, taken: list[str], end: End) -> float:
    """Which share of the elements that it consumed none of its outputs is about."""
    used = merged(r for one in taken for r in course.events[one].about)
    made = merged(r for one in end.outputs for r in course.events[one].about)
    return length(_without(used, made)) / length(used) if used else 0.0


# --- agents ---


def _of_agents(course: Course) -> Iterator[Measured]:
    for agent in course.agents:
        yield Measured("agent", agent, "gone", "agent gone", agent in course.leaves)
        held = merged(r for event in kept_for(course, agent) for r in event.about)
        is_starved = not course.answer and bool(held) and bool(_without(course.whole, held))
        yield Measured("agent", agent, "starved", "agent starved", is_starved)


def kept_for(course: Course, agent: str) -> list[Event]:
    """The solutions that an agent was to put together, and has in front of it in the end."""
    return [
        event
        for event in course.events.values()
        if event.type == "solution"
        and event.work
        and course.lies_unread(event)
        and report_to(event) == agent
        and any(to == agent for to, _ in event.arrivals)
    ]


# --- parts ---


def own_cuts(course: Course) -> set[int]:
    """Where the parts that a run speaks of begin and end."""
    return {bound for event in course.events.values() for r in event.about for bound in r}


def pieces(cuts: Iterable[int]) -> list[Range]:
    """The ranges between some numbers."""
    return list(pairwise(sorted(set(cuts))))


def _of_part(course: Course, piece: Range) -> Iterator[Measured]:
    name = part_name(piece)
    yield Measured("part", name, "missing", "part missing", is_missing(course, piece))
    solved = solved_us(course, piece)
    if solved is not None:
        yield Measured("part", name, "late", "part late", solved / 1e6)


def part_name(piece: Range) -> str:
    """How a part is called."""
    return f"{piece[0]}-{piece[1]}"


def piece_of(name: str) -> Range:
    """The part that is called so."""
    start, stop = name.split("-")
    return int(start), int(stop)


def solutions(course: Course, piece: Range) -> list[Event]:
    """The solutions of a part, answers among them, as generated."""
    return [
        event
        for event in course.events.values()
        if event.type == "solution" and _covers(event.about, piece)
    ]


def solved_us(course: Course, piece: Range) -> int | None:
    """When a part was first solved, in microseconds."""
    return next((event.us for event in solutions(course, piece)), None)


def gone_t(course: Course, event: Event) -> int | None:
    """The record since which a solution is not there any more, except in what was made of it."""
    end = course.consumption(event)
    if end is None:
        return event.lost_t if event.is_lost else None
    return max([end.t, *(course.events[one].t for one in end.outputs)])


def is_missing(course: Course, piece: Range) -> bool:
    """Whether a part is not in the answer; without one, whether no solution of it is left."""
    if course.answer is not None:
        return not _covers(course.answer.about, piece)
    return all(gone_t(course, event) is not None for event in solutions(course, piece))


# --- the outcome ---


def _of_outcome(course: Course, rmse: float | None) -> Iterator[Measured]:
    def number(state: str, value: float) -> Measured:
        return Measured("outcome", "", state, f"outcome {state}", value)

    ended = course.finish.outcome if course.finish else None
    answer = course.answer
    yield number("timeout", ended == "timeout")
    yield number("missing", answer is None and ended != "timeout")
    yield number("incomplete", 1 - _share(answer.about, course.whole) if answer else 0.0)
    if answer is not None and rmse is not None:
        yield number("wrong", rmse)


def raised(course: Course) -> dict[str, int]:
    """How often each pattern that is an error was raised."""
    counts = Counter(finding.pattern for finding in course.findings)
    return {pattern: counts[pattern] for pattern in ERRORS}


# --- ranges ---


def _covers(ranges: Ranges, piece: Range) -> bool:
    return any(start <= piece[0] and piece[1] <= stop for start, stop in ranges)


def _without(ranges: Ranges, others: Ranges) -> Ranges:
    """What of some ranges is in no other ones."""
    return tuple(gap for one in ranges for gap in missing(one, others))


def _share(ranges: Ranges, whole: Ranges) -> float:
    """Which share of the whole some ranges cover; all of it, if nobody knows the whole."""
    return common(ranges, whole) / length(whole) if whole else 1.0
