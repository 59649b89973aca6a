"""The accounting of a task: which of its parts an event is about, and whether one is missing.

A task may have an attribute `accounting` that reads the payloads of its events; `PAYLOADS` is that
of our tasks. `TaskParts` holds what it reads against a recorded run:

    parts = TaskParts(RecordedRun.read(Path("runs/2026-...")), task.accounting)
    lost = [range_name(part) for part in between(parts.cuts) if parts.is_missing(part)]
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

from dig.traces.run import RecordedEvent, RecordedRun

from .ranges import Range, Ranges, covers, merged, range_of

SOLUTION = "solution"
"""The type of events that carry what was found out about some parts."""
REFERENCE, ANSWERS, WHOLE = "ref", "answers", "whole"
"""The keys of payloads by which a solution refers to the problems that it solves; the reference of
a problem from outside."""


class TypedPayload(Protocol):
    """The input of an accounting: an `Output`, an `Emit` or a `RecordedEvent`, for example."""

    @property
    def type(self) -> str:
        """The event's type."""
        ...

    @property
    def payload(self) -> Any:
        """Its payload; it may be damaged, masked or missing."""
        ...


class Accounting(Protocol):
    """Reads the payloads of a task; its elements are numbered from 0, its parts are ranges."""

    def about(self, event: TypedPayload) -> Ranges:
        """The parts of the task that an event is about; none, if its payload does not say.

        Of an event of type `solution`, final ones included: the parts that it solves.
        """
        ...

    def report_to(self, event: TypedPayload) -> str | None:
        """The agent to which the result of an event is to be reported, if its payload says."""
        ...


class PayloadAccounting:
    """The accounting of our tasks: the keys `part`, `covers` and `report_to` of payloads."""

    def about(self, event: TypedPayload) -> Ranges:
        """The ranges under `covers` of a solution, and the one under `part` of anything else."""
        payload = event.payload
        if not isinstance(payload, Mapping):
            return ()
        given = payload.get("covers") if event.type == SOLUTION else [payload.get("part")]
        ranges = [range_of(value) for value in given] if isinstance(given, list) else []
        return () if None in ranges else merged(filter(None, ranges))

    def report_to(self, event: TypedPayload) -> str | None:
        """The name under `report_to`."""
        name = event.payload.get("report_to") if isinstance(event.payload, Mapping) else None
        return name if isinstance(name, str) else None


PAYLOADS = PayloadAccounting()


class ReferenceAccounting(PayloadAccounting):
    """The same where a solution names the problems that it solves, and not their parts."""

    def __init__(self, run: RecordedRun) -> None:
        """Read which part each problem of a run is about."""
        self._parts: dict[str, Range] = {}
        for event in run.events.values():
            if event.type == "problem" and isinstance(event.payload, Mapping):
                name = event.payload.get(REFERENCE, None if event.by else WHOLE)
                part = range_of(event.payload.get("part"))
                if isinstance(name, str) and part is not None:
                    self._parts.setdefault(name, part)

    def about(self, event: TypedPayload) -> Ranges:
        """The parts of the problems under `answers`, or what the payload itself says."""
        payload = event.payload
        names = payload.get(ANSWERS) if isinstance(payload, Mapping) else None
        if event.type != SOLUTION or not isinstance(names, list):
            return super().about(event)
        parts = [self._parts.get(name) if isinstance(name, str) else None for name in names]
        return () if None in parts else merged(filter(None, parts))


class TaskParts:
    """The parts of the task in a recorded run.

    Attributes:
        accounting: Reads the payloads of its events.
        problem: The part that one of its problems is about, if it has several: nothing else is
            looked at then.
    """

    def __init__(
        self, run: RecordedRun, accounting: Accounting, problem: Range | None = None
    ) -> None:
        """Read nothing yet."""
        self.run = run
        self.accounting = accounting
        self.problem = problem
        self._about: dict[str, Ranges] = {}

    def about(self, event: RecordedEvent) -> Ranges:
        """The parts that an event of the run is about."""
        known = self._about.get(event.id)
        if known is None:
            known = self._about[event.id] = self._clipped(self.accounting.about(event))
        return known

    def _clipped(self, about: Ranges) -> Ranges:
        if self.problem is None:
            return about
        start, stop = self.problem
        return merged((max(a, start), min(b, stop)) for a, b in about if a < stop and start < b)

    def is_of_another_problem(self, event: RecordedEvent) -> bool:
        """Whether an event is about another problem alone."""
        if self.problem is None or self.about(event):
            return False
        return bool(self.accounting.about(event))

    @cached_property
    def answer(self) -> RecordedEvent | None:
        """The accepted answer; of a session, the last one to its problem."""
        if self.problem is None:
            return self.run.answer
        answers = (one for one in self.run.events.values() if one.accepted_t is not None)
        return next((one for one in reversed([*answers]) if self._is_asked(one.payload)), None)

    def _is_asked(self, payload: Any) -> bool:
        whole = payload.get("whole") if isinstance(payload, Mapping) else None
        return range_of(whole) == self.problem

    def report_to(self, event: RecordedEvent) -> str | None:
        """The agent to which the result of an event is to be reported."""
        return self.accounting.report_to(event)

    @cached_property
    def whole(self) -> Ranges:
        """The whole task: the parts of the first event from outside that names any."""
        if self.problem is not None:
            return (self.problem,)
        posed = (self.about(event) for event in self.run.events.values() if event.by is None)
        return next(filter(None, posed), ())

    @cached_property
    def cuts(self) -> set[int]:
        """The places where the parts that the run speaks of begin and end."""
        events = self.run.events.values()
        return {bound for event in events for part in self.about(event) for bound in part}

    def solutions(self, part: Range) -> list[RecordedEvent]:
        """The solutions of a part, answers among them, as generated."""
        return [
            event
            for event in self.run.events.values()
            if event.type == SOLUTION and covers(self.about(event), part)
        ]

    def solved_us(self, part: Range) -> int | None:
        """When a part was first solved, in microseconds."""
        return next((event.us for event in self.solutions(part)), None)

    def solutions_kept(self, agent: str) -> list[RecordedEvent]:
        """The solutions that an agent was to merge and still has in front of it in the end."""
        return [
            event
            for event in self.run.events.values()
            if event.type == SOLUTION
            and event.is_work
            and self.run.is_unread(event)
            and self.report_to(event) == agent
            and any(to == agent for to, _ in event.arrivals)
        ]

    def gone_t(self, event: RecordedEvent) -> int | None:
        """The record at which a solution was consumed or lost; what was made of it may be there."""
        run = self.run
        end = run.consumption(event)
        if end is None:
            return run.orphaned_t(event.id) if run.is_orphaned(event.id) else None
        made = run.outputs(run.activations[end.activation])
        return max([end.t, *(one.t for one in made)])

    def is_missing(self, part: Range) -> bool:
        """Whether a part is not in the answer; without one, whether no solution of it is left."""
        if self.answer is not None:
            return not covers(self.about(self.answer), part)
        return all(self.gone_t(event) is not None for event in self.solutions(part))
