"""The payloads of simulated agents: parts of the data, and partial counts.

Everything that an agent has to know later travels in a payload, since it remembers nothing: the
whole range that is asked for, the agent to report to, and the ranges that some counts cover.
Payloads may be damaged; what cannot be read is ``None``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dig.tasks.accounting import ANSWERS
from dig.tasks.number_ranges import Range, merge, missing, range_of

from .message_reading import Reading

MOST_WEIGHED = 12
"""Overlapping partial counts up to this many are chosen from by trying all ways, 2^12 at most."""


@dataclass(frozen=True, slots=True)
class Job:
    """A part of the data to be counted.

    Attributes:
        part: The range to be counted.
        whole: The range that is asked for in the end.
        most: The number of elements that one message may carry.
        report_to: The agent that puts the counts together; ``None``: the agent that takes this on.
    """

    task: str
    part: Range
    whole: Range
    most: int
    report_to: str | None = None

    @property
    def length(self) -> int:
        """The number of elements of the part."""
        return self.part[1] - self.part[0]

    @classmethod
    def read(cls, payload: Any, reading: Reading) -> Job | None:
        """Read the job of a payload, if there is a job for this reading."""
        if not isinstance(payload, Mapping) or payload.get("task") != reading.task:
            return None
        part = range_of(payload.get("part"))
        problem_range = range_of(payload.get("whole", payload.get("part")))
        most, report_to = payload.get("most_per_message"), payload.get("report_to")
        if part is None or problem_range is None or type(most) is not int or most < 1:
            return None
        collector = report_to if isinstance(report_to, str) else None
        return cls(reading.task, part, problem_range, most, collector)

    def payload(self, **more: Any) -> dict[str, Any]:
        """The payload of this job."""
        return {
            "task": self.task,
            "part": list(self.part),
            "whole": list(self.whole),
            "most_per_message": self.most,
            "report_to": self.report_to,
            **more,
        }

    def at(self, part: Sequence[int]) -> Job:
        """The same job for another part."""
        return replace(self, part=(part[0], part[1]))


@dataclass(frozen=True, slots=True)
class RawData:
    """The elements of a part.

    Attributes:
        job: The part, and what it is to be counted for.
        data: Its elements.
    """

    job: Job
    data: tuple[Any, ...]

    @classmethod
    def read(cls, payload: Any, reading: Reading) -> RawData | None:
        """Read the raw data of a payload, if there are any."""
        job = Job.read(payload, reading)
        if job is None:
            return None
        data = payload.get("data")
        if not isinstance(data, list) or len(data) != job.length:
            return None
        return cls(job, tuple(data)) if all(map(reading.is_element, data)) else None


@dataclass(frozen=True, slots=True)
class Partial:
    """Counts of some ranges of the data.

    Attributes:
        counts: The number of occurrences of each value there, by its text.
        covers: The ranges, disjoint and in order.
        job: The job that they were counted for; its part is of no account.
        is_for_all: Whether all agents were sent a copy, not only the one that collects.
        is_repeated: Whether the agent that counted them knows that another has done so, too.
        awaited: Ranges that the agent which put these counts together knows to be still open.
    """

    counts: Mapping[str, int]
    covers: tuple[Range, ...]
    job: Job
    is_for_all: bool = False
    is_repeated: bool = False
    awaited: tuple[Range, ...] = ()

    @property
    def covered(self) -> int:
        """The number of counted elements."""
        return sum(stop - start for start, stop in self.covers)

    @property
    def share(self) -> float:
        """The covered share of the whole range."""
        start, stop = self.job.whole
        return self.covered / (stop - start)

    @property
    def is_complete(self) -> bool:
        """Whether the whole range is covered."""
        return not missing(self.job.whole, self.covers)

    @classmethod
    def read(cls, payload: Any, reading: Reading) -> Partial | None:
        """Read the counts of a payload, if there are any."""
        if not isinstance(payload, Mapping):
            return None
        job = Job.read({**payload, "part": payload.get("whole")}, reading)
        counts = payload.get("counts")
        covers = payload.get("covers", [] if ANSWERS in payload else None)
        if job is None or not isinstance(counts, Mapping) or not isinstance(covers, list):
            return None
        ranges = [r for r in map(range_of, covers) if r is not None]
        if len(ranges) < len(covers) or not all(
            isinstance(v, str) and reading.is_value(v) and type(n) is int for v, n in counts.items()
        ):
            return None
        is_for_all, is_repeated = (payload.get(n) is True for n in ("is_for_all", "is_repeated"))
        awaited = _ranges(payload.get("awaited"))
        return cls(counts, merge(ranges), job, is_for_all, is_repeated, awaited)

    def payload(self, *, is_for_all: bool = False) -> dict[str, Any]:
        """The payload of these counts, which is also an answer for the scorer."""
        return {
            "counts": dict(sorted(self.counts.items())),
            "covers": [list(r) for r in self.covers],
            "type": "solution",
            "task": self.job.task,
            "whole": list(self.job.whole),
            "most_per_message": self.job.most,
            "report_to": self.job.report_to,
            "is_for_all": is_for_all,
            **({"is_repeated": True} if self.is_repeated else {}),
            **({"awaited": [list(r) for r in self.awaited]} if self.awaited else {}),
        }

    def overlaps(self, other: Partial) -> bool:
        """Whether some element is counted in both."""
        return any(a < d and c < b for a, b in self.covers for c, d in other.covers)

    def adds_to(self, covers: Iterable[Range]) -> bool:
        """Whether the partial counts an element outside some ranges."""
        ranges = merge(covers)
        return any(missing(r, ranges) for r in self.covers)


def join(partials: Sequence[Partial], job: Job) -> Partial:
    """Merge partial counts; counts of another problem are added, but cover nothing here."""
    counts: Counter[str] = Counter()
    for partial in partials:
        counts.update(partial.counts)
    own = [partial for partial in partials if partial.job.whole == job.whole]
    covers = merge(r for partial in own for r in partial.covers)
    awaited = merge(r for partial in own for r in partial.awaited)
    return Partial(counts, covers, job, awaited=awaited)


def parts_in(payload: Any) -> tuple[Range, ...]:
    """The ranges of a payload: under `covers`, or the part."""
    if not isinstance(payload, Mapping):
        return ()
    return _ranges(payload.get("covers", [payload.get("part")]))


def _ranges(values: Any) -> tuple[Range, ...]:
    """The ranges in a list; other values are left out."""
    ranges = map(range_of, values) if isinstance(values, list | tuple) else ()
    return merge(r for r in ranges if r is not None)


def disjoint(partials: Sequence[Partial]) -> list[Partial]:
    """Choose partial counts with the largest cover and no element twice.

    Those that overlap one another, directly or by way of others, are weighed together; larger
    groups than `MOST_WEIGHED` are taken from the longest down.
    """
    chosen: list[Partial] = []
    for first, *candidates in _group(partials):
        group = [first]
        for member in group:  # which grows on the way
            group += [other for other in candidates if other.overlaps(member)]
            candidates = [other for other in candidates if not other.overlaps(member)]
        chosen += _best(group) if len(group) <= MOST_WEIGHED else _longest_first(group)
    return chosen


def _group(partials: Sequence[Partial]) -> list[list[Partial]]:
    """Group overlapping partials, by a sweep over all ranges: most stand alone."""
    leader = list(range(len(partials)))  # a member of the same group that came earlier, or itself

    def first(i: int) -> int:
        while leader[i] != i:
            # Halve the path, so that long chains of partials stay cheap.
            leader[i] = leader[leader[i]]
            i = leader[i]
        return i

    ranges = sorted((*r, i) for i, partial in enumerate(partials) for r in partial.covers)
    reach = before = 0
    for start, stop, i in ranges:
        if start < reach:
            # The earlier member leads, so groups come in the order of their first members.
            low, high = sorted((first(before), first(i)))
            leader[high] = low
        reach, before = max(reach, stop), i
    groups: dict[int, list[Partial]] = {}
    for i, partial in enumerate(partials):
        groups.setdefault(first(i), []).append(partial)
    return list(groups.values())


def _best(group: list[Partial]) -> list[Partial]:
    if len(group) < 2:
        return group
    first, tail = group[0], group[1:]
    # With the first member, or without it: two branches for each member of a group.
    with_first = [first, *_best([other for other in tail if not other.overlaps(first)])]
    without = _best(tail)
    return max(
        with_first, without, key=lambda partials: sum(partial.covered for partial in partials)
    )


def _longest_first(group: list[Partial]) -> list[Partial]:
    chosen: list[Partial] = []
    for partial in sorted(group, key=lambda partial: -partial.covered):
        if not any(partial.overlaps(other) for other in chosen):
            chosen.append(partial)
    return chosen
