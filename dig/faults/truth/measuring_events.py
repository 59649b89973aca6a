"""What is measured of an event: where it went, when, and whether it is what it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import takewhile

from dig.tasks.simulated.parts import merged
from dig.traces.run import RecordedEvent, RecordedRun

from .data_ranges import common, data_of, lacking, length, report_to, whole_task, without

Number = tuple[str, str, float]
"""A state, what further tells apart what may be compared, and the number."""


def of_event(run: RecordedRun, event: RecordedEvent, truth: Mapping[int, str]) -> Iterator[Number]:
    """What is measured of an event.

    Args:
        run: Its run.
        event: The event.
        truth: The elements of the task, as far as they are known.
    """
    by_type = f" {event.type}"
    if event.final:
        yield "premature", "", lacking(data_of(event), whole_task(run))
    elif event.is_work:
        yield "lost", by_type, run.orphaned_t(event.id) is not None
        yield "unread", by_type, run.is_unread(event)
        yield "delayed", "", _transit(run, event)
        yield "rerouted", by_type, len(event.reroutes)
        end = run.consumption(event)
        if end is not None and event.arrivals:
            yield "overdue", by_type, (end.us - run.times[event.arrivals[0][1]]) / 1e6
    if event.agent is not None and (event.is_work or event.final):
        yield from _of_making(run, event, truth)


def _of_making(
    run: RecordedRun, event: RecordedEvent, truth: Mapping[int, str]
) -> Iterator[Number]:
    """What is measured of an event that an agent has made."""
    by_type = f" {event.type}"
    yield "altered", by_type, _foreign(run, event)
    error = _miscounted(event, truth)
    if error is not None:
        yield "miscounted", f" {_level(event)}", error
    if event.is_work:
        yield "late", by_type, event.us / 1e6
        yield "shared", by_type, len(event.to)
        yield "duplicated", by_type, _is_double(run, event)
        if event.type == "solution":
            yield "misdirected", by_type, report_to(event) not in (None, *event.to)


def _transit(run: RecordedRun, event: RecordedEvent) -> float:
    """Seconds from its generation to its first arrival; to the end, if it never came."""
    if event.arrivals:
        return (run.times[event.arrivals[0][1]] - event.us) / 1e6
    return 0.0 if run.is_orphaned(event.id) else (run.last.us - event.us) / 1e6


def _foreign(run: RecordedRun, event: RecordedEvent) -> bool:
    """Whether it is about nothing, or about more than what its activation consumed."""
    activation = run.activations[event.by or ""]
    used = [r for one in activation.with_fate("consume") for r in data_of(run.events[one])]
    return bool(used) and not (data_of(event) and not without(data_of(event), merged(used)))


def _is_double(run: RecordedRun, event: RecordedEvent) -> bool:
    """Whether an earlier event of its type, not behind it, is about some of the same elements."""
    behind = run.ancestors(event.id)
    earlier = takewhile(lambda other: other.id != event.id, run.events.values())
    alike = (one for one in earlier if one.type == event.type and one.is_work)
    return any(one.id not in behind and common(data_of(one), data_of(event)) for one in alike)


def _level(event: RecordedEvent) -> str:
    return "answer" if event.final else "one" if len(data_of(event)) == 1 else "several"


def _miscounted(event: RecordedEvent, truth: Mapping[int, str]) -> float | None:
    """How far counts are from what was to be counted, in elements for each element covered.

    If all elements are known, and are values by themselves, it is the sum of the differences;
    else that between the sum of the counts and the number of elements.
    """
    counts = event.payload.get("counts") if isinstance(event.payload, dict) else None
    covered = length(data_of(event))
    if not covered or not isinstance(counts, dict):
        return None
    if any(type(count) not in (int, float) for count in counts.values()):
        return None
    expected = Counter(truth.get(i) for a, b in data_of(event) for i in range(a, b))
    if None in expected:
        return abs(sum(counts.values()) - covered) / covered
    values = sorted(set(counts).union(expected), key=str)
    wrong: float = sum(abs(counts.get(value, 0) - expected[value]) for value in values)
    return wrong / covered


def elements(run: RecordedRun) -> dict[int, str]:
    """The elements that the run's raw data show, by number, where they are values themselves."""
    known: dict[int, str] = {}
    for event in run.events.values():
        data = event.payload.get("data") if isinstance(event.payload, dict) else None
        if event.type != "raw_data" or not isinstance(data, list) or len(data_of(event)) != 1:
            continue
        if all(type(value) is int for value in data):
            known.update(zip(range(*data_of(event)[0]), map(str, data), strict=False))
    return known
