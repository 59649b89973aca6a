"""Transforms of the payloads of a task, for faults that damage them or put them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from dig.tasks.count_frequency import TASK as COUNT_FREQUENCY
from dig.tasks.newsgroups import TASK as NEWSGROUPS
from dig.tasks.simulated.classifying import Posts
from dig.tasks.simulated.parts import Job, Partial, disjoint, join
from dig.tasks.simulated.reading import Numbers, Reading

Transform = Callable[[Any], Any]
"""Makes a damaged payload of one; ``None``, if it does not fit the payload."""

Join = Callable[[Sequence[Any], str], Any]
"""Makes one payload of those of several solutions, for the agent that goes on with it."""

TRANSFORMS: Mapping[str, str] = MappingProxyType(
    {
        "garbled": "nothing is left of it that can be read",
        "counts": "each count of a solution is ten times as high, as by a slip of a digit",
        "covers": "a solution says that it covers everything",
        "moved": "counts of a solution stand at other values; their sum is right",
        "part": "a problem is about the part after its own, or before it",
    }
)
"""All ways to damage a payload, and their effect; a task may lack some."""

_FACTOR = 10
GARBAGE = "\ufffd" * 8


@dataclass(frozen=True)
class Payloads:
    """The payloads of one task.

    Attributes:
        transforms: The ways to damage a payload, by name.
        joined: Several solutions as one, put together with care: nothing is in it twice.
        heaped: Several solutions as one, without care.
    """

    transforms: Mapping[str, Transform]
    joined: Join
    heaped: Join


def _garbled(payload: Any) -> Any:
    return GARBAGE


def damaged(value: Any) -> Any:
    """Any value with all text in it garbled and all numbers too high; its shape is left."""
    if isinstance(value, str):
        return GARBAGE
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value * _FACTOR
    if isinstance(value, dict):
        return {name: damaged(one) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(damaged(one) for one in value)
    return value


def _listed(solutions: Sequence[Any], agent: str) -> Any:
    return solutions[0] if len(solutions) == 1 else {"solutions": [*solutions]}


UNKNOWN = Payloads(MappingProxyType({"garbled": _garbled}), _listed, _listed)
"""Transforms of unknown payloads."""


@dataclass(frozen=True)
class _Counted:
    """Payloads of tasks whose data are counted in parts."""

    reading: Reading

    def payloads(self) -> Payloads:
        transforms: dict[str, Transform] = {
            "garbled": _garbled,
            "counts": self.counts,
            "covers": self.covers,
            "moved": self.moved,
            "part": self.part,
        }
        joined, heaped = partial(self.joined, disjoint), partial(self.joined, list)
        return Payloads(MappingProxyType(transforms), joined, heaped)

    def counts(self, payload: Any) -> Any:
        partial = Partial.read(payload, self.reading)
        if partial is None:
            return None
        return {**payload, "counts": {v: n * _FACTOR for v, n in payload["counts"].items()}}

    def covers(self, payload: Any) -> Any:
        partial = Partial.read(payload, self.reading)
        if partial is None or "covers" not in payload:
            return None
        return {**payload, "covers": [list(partial.job.whole)]}

    def moved(self, payload: Any) -> Any:
        """Each count stands at the value whose count is as far from the other end."""
        partial = Partial.read(payload, self.reading)
        if partial is None:
            return None
        counts = payload["counts"]
        ranked = sorted(counts, key=lambda value: (counts[value], value))
        taken = zip(ranked, reversed(ranked), strict=True)
        return {**payload, "counts": {value: counts[other] for value, other in taken}}

    def part(self, payload: Any) -> Any:
        job = Job.read(payload, self.reading)
        if job is None or job.part == job.whole or "data" in payload:
            return None
        (start, stop), (first, last) = job.part, job.whole
        if stop + job.length <= last:
            return {**payload, "part": [stop, stop + job.length]}
        if start > first:
            return {**payload, "part": [max(first, start - job.length), start]}
        return {**payload, "part": [last - job.length, last]}

    def joined(
        self, chosen: Callable[[Sequence[Partial]], list[Partial]], solutions: Sequence[Any],
        agent: str,
    ) -> Any:  # fmt: skip
        read = [Partial.read(payload, self.reading) for payload in solutions]
        partials = [partial for partial in read if partial is not None]
        if not partials:
            return _listed(solutions, agent)
        job = replace(partials[0].job, report_to=agent)
        return join(chosen(partials), job).payload()


_KNOWN: Mapping[str, Payloads] = MappingProxyType(
    {
        COUNT_FREQUENCY: _Counted(Numbers()).payloads(),
        NEWSGROUPS: _Counted(Posts()).payloads(),
    }
)


def payloads_of(task: str) -> Payloads:
    """The transforms of a task's payloads; of a user's own task, those of unknown payloads."""
    return _KNOWN.get(task, UNKNOWN)
