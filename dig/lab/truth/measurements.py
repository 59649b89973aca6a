"""The measurements of a run: numbers that say how far each event, agent and so on is in a state.

The same function measures a faulted run, its twin and the runs of a baseline, so that they can be
compared. The number is larger the more a thing is in the state; 0 means not at all, except for
times. docs/lab/faults-verification.md says what each means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple

from dig.graph.records import End
from dig.tasks import number_ranges as ranges
from dig.tasks.accounting import SOLUTION, TaskParts
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

DIGITS = 6
"""Numbers are rounded to so many digits after the point, before anything is done with them."""


class Measured(NamedTuple):
    """A number.

    Attributes:
        type: The type of the thing.
        name: The name of the measurement.
        state: The state that the number is about.
        measure: The measure: numbers of the same measure may be compared.
        value: The number; times are in seconds.
    """

    type: str
    name: str
    state: str
    measure: str
    value: float


def measure_parts(
    parts: TaskParts,
    rmse: float | None = None,
    cuts: Iterable[int] = (),
    truth: Mapping[int, str] | None = None,
) -> Iterator[Measured]:
    """All numbers of a run, rounded to `DIGITS`.

    Args:
        parts: The run, with the parts of its task.
        rmse: The error of its answer, if that is known.
        cuts: The places where parts begin and end, besides where the run itself cuts.
        truth: The elements of the task, as far as they are known; what it has shown, if left out.
    """
    numbers = elements(parts) if truth is None else truth
    for row in _measure_rows(parts, rmse, cuts, numbers):
        # Sums of floats differ in the last digits between machines.
        yield row._replace(value=round(row.value, DIGITS))


def _measure_rows(
    parts: TaskParts, rmse: float | None, cuts: Iterable[int], truth: Mapping[int, str]
) -> Iterator[Measured]:
    run = parts.run
    for event in run.events.values():
        if not parts.is_of_another_problem(event):
            yield from _about("event", event.id, _of_event(parts, event, truth))
    for activation in run.activations.values():
        yield from _about("activation", activation.id, _of_activation(parts, activation))
    for agent in run.agents:
        yield from _about("agent", agent, _of_agent(parts, agent))
    for piece in ranges.between([*cuts, *parts.cuts]):
        yield from _about("part", ranges.range_name(piece), _of_part(parts, piece))
    which = ranges.range_name(parts.problem) if parts.problem else ""
    yield from _about("outcome", which, _of_outcome(parts, rmse))
    for pattern, count in count_findings(run).items():
        yield Measured("finding", pattern, "raised", f"raised {pattern}", count)


Number = tuple[str, str, float]
"""A state, what further tells apart what may be compared, and the number."""


def _about(kind: str, name: str, numbers: Iterable[Number]) -> Iterator[Measured]:
    for state, further, value in numbers:
        yield Measured(kind, name, state, f"{kind} {state}{further}", value)


# --- events ---


def _of_event(parts: TaskParts, event: RecordedEvent, truth: Mapping[int, str]) -> Iterator[Number]:
    """The numbers of an event.

    Args:
        parts: Its run.
        event: The event.
        truth: The elements of the task, as far as they are known.
    """
    run = parts.run
    by_type = f" {event.type}"
    if event.final:
        yield "premature", "", ranges.lacking(parts.about(event), parts.whole)
    elif event.is_work:
        yield "lost", by_type, run.orphaned_t(event.id) is not None
        yield "unread", by_type, run.is_unread(event)
        yield "delayed", "", _transit(run, event)
        yield "rerouted", by_type, len(event.reroutes)
        end = run.consumption(event)
        if end is not None and event.arrivals:
            yield "overdue", by_type, (end.us - run.times[event.arrivals[0][1]]) / 1e6
    if event.agent is not None and (event.is_work or event.final):
        yield from _of_making(parts, event, truth)


def _of_making(
    parts: TaskParts, event: RecordedEvent, truth: Mapping[int, str]
) -> Iterator[Number]:
    """The numbers of an event from an agent."""
    by_type = f" {event.type}"
    yield "altered", by_type, _foreign(parts, event)
    error = _counting_error(parts, event, truth)
    if error is not None:
        level = "answer" if event.final else "one" if len(parts.about(event)) == 1 else "several"
        yield "miscounted", f" {level}", error
    if event.is_work:
        yield "late", by_type, event.us / 1e6
        yield "shared", by_type, len(event.to)
        yield "duplicated", by_type, _is_double(parts, event)
        if event.type == SOLUTION:
            yield "misdirected", by_type, _is_misdirected(parts, event)


def _transit(run: RecordedRun, event: RecordedEvent) -> float:
    """Seconds from generation to first arrival; without an arrival, to the end of the run."""
    if event.arrivals:
        return (run.times[event.arrivals[0][1]] - event.us) / 1e6
    # A lost event is `lost`; to call it late as well would count it twice.
    return 0.0 if run.is_orphaned(event.id) else (run.last.us - event.us) / 1e6


def _foreign(parts: TaskParts, event: RecordedEvent) -> bool:
    """Whether the event is about nothing, or about more than the inputs of the activation."""
    activation = parts.run.activations[event.by or ""]
    used, spanned = _span(parts, activation.with_fate("consume")), parts.about(event)
    return bool(used) and not (spanned and not ranges.difference(spanned, used))


def _is_double(parts: TaskParts, event: RecordedEvent) -> bool:
    """Whether an earlier event of the same type, no ancestor, shares elements."""
    run, mine = parts.run, parts.about(event)
    behind = run.ancestors(event.id)
    earlier = takewhile(lambda other: other.id != event.id, run.events.values())
    alike = (other for other in earlier if other.type == event.type and other.is_work)
    return any(
        other.id not in behind and ranges.common(parts.about(other), mine) for other in alike
    )


def _is_misdirected(parts: TaskParts, event: RecordedEvent) -> bool:
    """Whether the event, or a solution consumed for it, was meant for another agent."""
    run = parts.run
    used = (
        run.events[event_id] for event_id in run.activations[event.by or ""].with_fate("consume")
    )
    put_in = [
        other for other in used if other.type == SOLUTION and not parts.is_of_another_problem(other)
    ]
    agents = {parts.report_to(other) for other in (event, *put_in)}
    return not agents <= {None, *event.to}


def _counting_error(
    parts: TaskParts, event: RecordedEvent, truth: Mapping[int, str]
) -> float | None:
    """The error of the counts of an event, in elements for each element covered.

    If all elements are known, and are values by themselves, it is the sum of the differences;
    else that between the sum of the counts and the number of elements.
    """
    counts = event.payload.get("counts") if isinstance(event.payload, dict) else None
    covered = ranges.length(parts.about(event))
    if not covered or not isinstance(counts, dict):
        return None
    # By type, since True is an int.
    if any(type(count) not in (int, float) for count in counts.values()):
        return None
    expected = Counter(truth.get(i) for a, b in parts.about(event) for i in range(a, b))
    # An element is unknown, so only the total can be checked.
    if None in expected:
        return abs(sum(counts.values()) - covered) / covered
    values = sorted(set(counts).union(expected), key=str)
    wrong: float = sum(abs(counts.get(value, 0) - expected[value]) for value in values)
    return wrong / covered


def elements(parts: TaskParts) -> dict[int, str]:
    """Collect the elements from the raw data of the run, if elements are plain values."""
    numbers: dict[int, str] = {}
    for event in parts.run.events.values():
        data = event.payload.get("data") if isinstance(event.payload, dict) else None
        about = parts.about(event)
        if event.type != "raw_data" or not isinstance(data, list) or len(about) != 1:
            continue
        # Only numbers are their own class; a document has to be judged first.
        if all(type(value) is int for value in data):
            numbers.update(zip(range(*about[0]), map(str, data), strict=False))
    return numbers


# --- activations ---


def _of_activation(parts: TaskParts, activation: RecordedActivation) -> Iterator[Number]:
    run = parts.run
    end = activation.end
    yield "slow", "", ((end.us if end else run.last.us) - activation.us) / 1e6
    if end is None:
        return
    yield "failed", "", end.error is not None
    work = [other for other in map(run.events.__getitem__, activation.inputs) if other.is_work]
    consumed = activation.with_fate("consume")
    passed, dropped = activation.with_fate("reroute"), activation.with_fate("discard")
    if work and end.error is None:
        did_nothing = not (consumed or passed or dropped or end.outputs)
        yield "idle", f" {_before_it(parts, work)}", did_nothing
    yield "rerouting", "", len(passed)
    yield "discarding", "", len(dropped)
    yield "losing", "", _losing(parts, consumed, end)
    outputs = [run.events[event_id] for event_id in end.outputs]
    final = [ranges.lacking(parts.about(other), parts.whole) for other in outputs if other.final]
    yield "hasty", "", max(final, default=0.0)


def _before_it(parts: TaskParts, work: list[RecordedEvent]) -> str:
    """Describe the inputs of an activation in a word: work, all solutions, or some solutions."""
    # To do nothing is usual before a part of the solutions, and odd before all of them.
    if any(event.type != SOLUTION for event in work):
        return "work"
    held = ranges.merge(r for event in work for r in parts.about(event))
    return "some" if ranges.difference(parts.whole, held) else "all"


def _losing(parts: TaskParts, consumed: list[str], end: End) -> float:
    """The share of consumed elements without any output."""
    used, generated = _span(parts, consumed), _span(parts, end.outputs)
    return ranges.length(ranges.difference(used, generated)) / ranges.length(used) if used else 0.0


def _span(parts: TaskParts, events: Iterable[str]) -> ranges.Ranges:
    """The elements of some events."""
    return ranges.merge(r for event_id in events for r in parts.about(parts.run.events[event_id]))


# --- agents ---


def _of_agent(parts: TaskParts, agent: str) -> Iterator[Number]:
    run = parts.run
    yield "gone", "", agent in run.leaves
    held = ranges.merge(r for event in parts.solutions_kept(agent) for r in parts.about(event))
    yield (
        "starved",
        "",
        not parts.answer and bool(held) and bool(ranges.difference(parts.whole, held)),
    )


# --- parts ---


def _of_part(parts: TaskParts, piece: ranges.Range) -> Iterator[Number]:
    yield "missing", "", parts.is_missing(piece)
    solved = parts.solved_us(piece)
    if solved is not None:
        yield "late", "", solved / 1e6


# --- the outcome ---


def _of_outcome(parts: TaskParts, rmse: float | None) -> Iterator[Number]:
    run = parts.run
    ended = run.finish.outcome if run.finish else None
    answer = parts.answer
    yield "timeout", "", ended == "timeout" and not (parts.problem and answer)
    yield "missing", "", answer is None and ended != "timeout"
    yield "incomplete", "", ranges.lacking(parts.about(answer), parts.whole) if answer else 0.0
    if answer is not None and rmse is not None:
        yield "wrong", "", rmse


CONSEQUENCES = ("ET", "MC", "OE", "DL")
"""The patterns that rules lead to; a pattern without a rule is not verified."""


def count_findings(run: RecordedRun) -> dict[str, int]:
    """Count the findings of each pattern in `CONSEQUENCES`."""
    counts = Counter(finding.pattern for finding in run.findings)
    return {pattern: counts[pattern] for pattern in CONSEQUENCES}
