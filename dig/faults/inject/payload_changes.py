"""Transforms of the payloads of a task, for faults that damage or merge payloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from dig.tasks.count_frequency import TASK as COUNT_FREQUENCY
from dig.tasks.newsgroups import TASK as NEWSGROUPS
from dig.tasks.simulated.classifying import Posts
from dig.tasks.simulated.message_reading import Numbers, Reading
from dig.tasks.simulated.parts import Job, Partial, disjoint, join

Transform = Callable[[Any], Any]
"""Damages a payload; ``None``: the transform does not fit the payload."""

Join = Callable[[Sequence[Any], str], Any]
"""Merges the payloads of several solutions, for the agent that goes on with the result."""

TRANSFORMS: Mapping[str, str] = MappingProxyType(
    {
        "garbled": "nothing is left of it that can be read",
        "counts": "each count of a solution is ten times as high, as by a slip of a digit",
        "covers": "a solution says that it covers everything",
        "moved": "counts of a solution stand at other values; their sum is right",
        "part": "a problem is about the part after its own, or before it",
    }
)
"""All ways to damage a payload, with their effect; a task may lack some."""

_FACTOR = 10
GARBAGE = "\ufffd" * 8


@dataclass(frozen=True)
class Payloads:
    """The payloads of a task.

    Attributes:
        transforms: The ways to damage a payload, by name.
        joined: Merges several solutions with care: no part is counted twice.
        heaped: Merges several solutions without care.
    """

    transforms: Mapping[str, Transform]
    joined: Join
    heaped: Join


def _garble(payload: Any) -> Any:
    return GARBAGE


def damage(value: Any) -> Any:
    """Damage any value: all text garbled, all numbers too high, the same shape."""
    if isinstance(value, str):
        return GARBAGE
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value * _FACTOR
    if isinstance(value, dict):
        return {key: damage(element) for key, element in value.items()}
    if type(value) in (list, tuple):
        return type(value)(damage(element) for element in value)
    return value


def _list_solutions(solutions: Sequence[Any], agent: str) -> Any:
    return solutions[0] if len(solutions) == 1 else {"solutions": [*solutions]}


UNKNOWN = Payloads(MappingProxyType({"garbled": _garble}), _list_solutions, _list_solutions)
"""Transforms of unknown payloads."""


def _frequency_payloads(reading: Reading) -> Payloads:
    """The payloads of a task with data counted in parts."""

    def counts(payload: Any) -> Any:
        if Partial.read(payload, reading) is None:
            return None
        return {**payload, "counts": {v: n * _FACTOR for v, n in payload["counts"].items()}}

    def covers(payload: Any) -> Any:
        solution = Partial.read(payload, reading)
        if solution is None or "covers" not in payload:
            return None
        return {**payload, "covers": [list(solution.job.whole)]}

    def move(payload: Any) -> Any:
        if Partial.read(payload, reading) is None:
            return None
        # The most frequent value gets the count of the rarest, and so on: the sum stays right.
        counts = payload["counts"]
        ranked = sorted(counts, key=lambda value: (counts[value], value))
        pairs = zip(ranked, reversed(ranked), strict=True)
        return {**payload, "counts": {value: counts[other] for value, other in pairs}}

    def part(payload: Any) -> Any:
        job = Job.read(payload, reading)
        if job is None or job.part == job.whole or "data" in payload:
            return None
        (start, stop), (first, last) = job.part, job.whole
        if stop + job.length <= last:
            return {**payload, "part": [stop, stop + job.length]}
        if start > first:
            return {**payload, "part": [max(first, start - job.length), start]}
        return {**payload, "part": [last - job.length, last]}

    def merge(
        select: Callable[[Sequence[Partial]], list[Partial]], solutions: Sequence[Any], agent: str
    ) -> Any:
        partials = [
            solution for payload in solutions if (solution := Partial.read(payload, reading))
        ]
        if not partials:
            return _list_solutions(solutions, agent)
        return join(select(partials), replace(partials[0].job, report_to=agent)).payload()

    transforms: dict[str, Transform] = {
        "garbled": _garble, "counts": counts, "covers": covers, "moved": move, "part": part,
    }  # fmt: skip
    return Payloads(MappingProxyType(transforms), partial(merge, disjoint), partial(merge, list))


_PAYLOADS: Mapping[str, Payloads] = MappingProxyType(
    {COUNT_FREQUENCY: _frequency_payloads(Numbers()), NEWSGROUPS: _frequency_payloads(Posts())}
)


def payloads_of(task: str) -> Payloads:
    """The transforms of a task's payloads; for a user's task the unknown payloads."""
    return _PAYLOADS.get(task, UNKNOWN)
