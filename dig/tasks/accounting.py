"""The accounting of a task: the parts behind each event, and missing parts.

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

from .number_ranges import Range, Ranges, covers, intersection, merge, range_of

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
        """The payload; may be damaged, masked or missing."""
        ...


class Accounting(Protocol):
    """Reads the payloads of a task; elements are numbered from 0, parts are ranges."""

    def about(self, event: TypedPayload) -> Ranges:
        """The parts of the task behind an event; none, if the payload does not say.

        Of an event of type `solution`, final ones included: the parts that it solves.
        """
        ...

    def report_to(self, event: TypedPayload) -> str | None:
        """The agent that wants the result of an event, if the payload says so."""
        ...


class PayloadAccounting:
    """The accounting of our tasks: the keys `part`, `covers` and `report_to` of payloads."""

    def about(self, event: TypedPayload) -> Ranges:
        """The ranges under `covers` of a solution, and the range under `part` of other events."""
        payload = event.payload
        if not isinstance(payload, Mapping):
            return ()
        parts = payload.get("covers") if event.type == SOLUTION else [payload.get("part")]
        ranges = [range_of(value) for value in parts] if isinstance(parts, list) else []
        return () if None in ranges else merge(filter(None, ranges))

    def report_to(self, event: TypedPayload) -> str | None:
        """The name under `report_to`."""
        name = event.payload.get("report_to") if isinstance(event.payload, Mapping) else None
        return name if isinstance(name, str) else None


PAYLOADS = PayloadAccounting()


class ReferenceAccounting(PayloadAccounting):
    """The accounting for solutions that name problems instead of parts."""

    def __init__(self, run: RecordedRun) -> None:
        """Read the part of each problem of a run."""
        self._parts: dict[str, Range] = {}
        for event in run.events.values():
            if event.type == "problem" and isinstance(event.payload, Mapping):
                name = event.payload.get(REFERENCE, None if event.by else WHOLE)
                part = range_of(event.payload.get("part"))
                if isinstance(name, str) and part is not None:
                    self._parts.setdefault(name, part)

    def about(self, event: TypedPayload) -> Ranges:
        """The parts of the problems under `answers`, or the ranges in the payload."""
        payload = event.payload
        names = payload.get(ANSWERS) if isinstance(payload, Mapping) else None
        if event.type != SOLUTION or not isinstance(names, list):
            return super().about(event)
        parts = [self._parts.get(name) if isinstance(name, str) else None for name in names]
        return () if None in parts else merge(filter(None, parts))


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
        """The parts behind an event of the run."""
        # Signs and scores ask for the same events again and again.
        ranges = self._about.get(event.id)
        if ranges is None:
            ranges = self.accounting.about(event)
            if self.problem is not None:
                ranges = intersection(ranges, (self.problem,))
            self._about[event.id] = ranges
        return ranges

    def is_of_another_problem(self, event: RecordedEvent) -> bool:
        """Whether an event is about another problem alone."""
        if self.problem is None or self.about(event):
            return False
        return bool(self.accounting.about(event))

    @cached_property
    def answer(self) -> RecordedEvent | None:
        """The accepted answer; in a session the last answer to the problem."""
        if self.problem is None:
            return self.run.answer
        for event in reversed(self.run.events.values()):
            payload = event.payload if isinstance(event.payload, Mapping) else {}
            if event.accepted_t is not None and range_of(payload.get("whole")) == self.problem:
                return event
        return None

    def report_to(self, event: RecordedEvent) -> str | None:
        """The agent that wants the result of an event."""
        return self.accounting.report_to(event)

    @cached_property
    def whole(self) -> Ranges:
        """The whole task: the parts of the first event from outside with any parts."""
        if self.problem is not None:
            return (self.problem,)
        posed = (self.about(event) for event in self.run.events.values() if event.by is None)
        return next(filter(None, posed), ())

    @cached_property
    def cuts(self) -> set[int]:
        """The bounds of all parts in the run."""
        events = self.run.events.values()
        return {bound for event in events for part in self.about(event) for bound in part}

    def solutions(self, part: Range) -> list[RecordedEvent]:
        """The solutions of a part with answers, in order of generation."""
        return [
            event
            for event in self.run.events.values()
            if event.type == SOLUTION and covers(self.about(event), part)
        ]

    def solved_us(self, part: Range) -> int | None:
        """When a part was first solved, in microseconds."""
        return next((event.us for event in self.solutions(part)), None)

    def solutions_kept(self, agent: str) -> list[RecordedEvent]:
        """The unread solutions in front of the agent that was to merge them."""
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
        """The record at which a solution was consumed or lost, its outputs included."""
        run = self.run
        end = run.consumption(event)
        if end is None:
            return run.orphaned_t(event.id) if run.is_orphaned(event.id) else None
        outputs = run.outputs(run.activations[end.activation])
        return max([end.t, *(output.t for output in outputs)])

    def is_missing(self, part: Range) -> bool:
        """Whether the answer lacks a part; without an answer, whether no solution is left."""
        if self.answer is not None:
            return not covers(self.about(self.answer), part)
        return all(self.gone_t(event) is not None for event in self.solutions(part))
