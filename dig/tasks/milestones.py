"""Milestones: how far a run came on the way to a good answer.

A task may have a method `milestones(records)` that returns at most `MOST`; `part_milestones` makes
those of CountFrequency and Newsgroups. They are tests over the records alone, so that a run and its
forks are judged by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dig._util.text import name, one_line
from dig.show.cause import Evidence
from dig.traces.run import RecordedEvent, RecordedRun

from .accounting import SOLUTION, TaskParts
from .number_ranges import Ranges, common, difference, length, merge
from .task import Score

MOST = 5
"""The number of milestones that a task has at most."""

RAW_DATA = "raw_data"
NO_ANSWER = "no answer was accepted"


@dataclass(frozen=True, slots=True)
class Milestone:
    """A stage on the way to a good answer.

    Attributes:
        title: The stage in words.
        reached: Whether the run reached it.
        evidence: The records that show it; of one that was not reached, the last record.
    """

    title: str
    reached: bool
    evidence: tuple[Evidence, ...]


def milestone(title: str, shown: Evidence | None, otherwise: Evidence) -> Milestone:
    """Make a milestone, reached if there is evidence.

    Args:
        title: The stage in words.
        shown: The evidence that it was reached; ``None``: it was not.
        otherwise: The evidence that it was not.
    """
    return Milestone(title, shown is not None, (shown or otherwise,))


def part_milestones(
    parts: TaskParts, score: Callable[[object], Score | None], unit: str = "elements"
) -> tuple[Milestone, ...]:
    """The milestones of a task with parts that are counted and merged into an answer.

    Args:
        parts: The run, with the parts of its task.
        score: The task's score of an answer.
        unit: The name of the data's elements, in the plural.

    Returns:
        Five milestones; none, if no event from outside says what the whole task is.
    """
    if not parts.whole:
        return ()
    outputs = [event for event in parts.run.events.values() if event.agent is not None]
    counted = list(_count_parts(parts, outputs))
    return (
        _begun(parts, outputs),
        _share(parts, counted, "half of the parts were counted", 0.5, unit),
        _share(parts, counted, "all of the parts were counted", 1.0, unit),
        _whole_answer(parts, outputs),
        _good_answer(parts.run, score),
    )


def _begun(parts: TaskParts, outputs: Sequence[RecordedEvent]) -> Milestone:
    """A part of the problem was handed on, or read; handing on the whole is not enough."""
    most = length(parts.whole)
    for event in outputs:
        overlap = common(parts.about(event), parts.whole)
        if overlap and (overlap < most or event.type in (RAW_DATA, SOLUTION)):
            shown = Evidence(event.t, f"{name(event.id)} is about a part of the task")
            break
    else:
        shown = None
    otherwise = Evidence(parts.run.last.t, "no agent has split the problem or read a part of it")
    return milestone("the problem was split or read", shown, otherwise)


def _count_parts(parts: TaskParts, outputs: Sequence[RecordedEvent]) -> Iterator[tuple[int, int]]:
    """The records of solutions, each with how many elements have been counted by then."""
    covered: Ranges = ()
    for event in outputs:
        if event.type == SOLUTION:
            # Solutions may overlap, so the elements of their union count.
            covered = merge([*covered, *parts.about(event)])
            yield event.t, common(covered, parts.whole)


def _share(
    parts: TaskParts, counted: Sequence[tuple[int, int]], title: str, share: float, unit: str
) -> Milestone:
    """A share of all elements was counted.

    Args:
        parts: The run, with the parts of its task.
        counted: The records of solutions, each with how many elements were counted by then.
        title: The milestone in words.
        share: The share that it asks for.
        unit: The name of the elements, in the plural.
    """
    size = length(parts.whole)
    rows = [
        Evidence(t, f"{number:,} of {size:,} {unit} are in solutions")
        for t, number in counted
        if number >= share * size
    ]
    most = counted[-1][1] if counted else 0
    lacks = Evidence(parts.run.last.t, f"{most:,} of {size:,} {unit} are in solutions")
    return milestone(title, rows[0] if rows else None, lacks)


def _whole_answer(parts: TaskParts, outputs: Sequence[RecordedEvent]) -> Milestone:
    shown = (
        Evidence(event.t, f"{name(event.id)} is an answer about the whole task")
        for event in outputs
        if event.final and not difference(parts.whole, parts.about(event))
    )
    otherwise = Evidence(parts.run.last.t, "no answer is about the whole task")
    return milestone("one answer has all parts", next(shown, None), otherwise)


def _good_answer(run: RecordedRun, score: Callable[[object], Score | None]) -> Milestone:
    """An accepted answer is valid and complete, by the score."""
    title, lacks = "an answer was accepted, and is good", list[Evidence]()
    for event in run.events.values():
        if event.accepted_t is not None:
            scored, lack = score(event.payload), ""
            if scored is not None and not scored.valid:
                lack = f", but is {one_line(scored, 90)}"
            elif scored is not None and scored.complete is False:
                lack = ", but is not complete"
            text = f"the answer {name(event.id)} was accepted{lack}"
            if not lack:
                return Milestone(title, True, (Evidence(event.accepted_t, text),))
            lacks.append(Evidence(event.accepted_t, text))
    return Milestone(title, False, (*lacks[-1:],) or (Evidence(run.last.t, NO_ANSWER),))
