"""WorkDone: the events of a run on the way to the answer, and the lost events.

A failure is work that led nowhere, or an answer that was made of spoilt work. So a sign counts if
the work that it is about led nowhere or, if what was made is at fault, if that was used.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from dig.diagnosis.signs.analysis import RunAnalysis
from dig.tasks.accounting import SOLUTION
from dig.tasks.number_ranges import Ranges, difference, intersection, merge
from dig.traces.run import RecordedEvent

WAITS = 0.1
"""Work of a type may wait for other work if peers delay it with this share."""


class WorkDone:
    """The events of a run on the way to the answer or, without an answer, in waiting."""

    def __init__(self, analysis: RunAnalysis) -> None:
        """Start without any walk back."""
        self.analysis = analysis

    def is_lost(self, event: RecordedEvent) -> bool:
        """Whether the way of some work ends with an event.

        Nothing was made of it, nor of another event with its content, and its parts of the task are
        not done in another way. Of an event that did not arrive: no other with its content did.
        """
        content = self.analysis.payloads.content(event)
        if event.id in self.used or content in self._used_contents:
            return False
        if not event.arrivals and content in self._arrived_contents:
            return False
        if self.analysis.parts is None and self._has_used_copy(event):
            return False
        return self._is_undone(event)

    def _has_used_copy(self, event: RecordedEvent) -> bool:
        """Whether another event of the same type, to the same agents, was used.

        Its activation must have generated more of them than it consumed: where contents tell
        nothing, one of them is a copy.
        """
        by = self.analysis.run.activations.get(event.by or "")
        outputs = self.analysis.run.outputs(by) if by is not None else []
        alike = [other for other in outputs if (other.type, other.to) == (event.type, event.to)]
        used = self.analysis.inputs_behind(event)
        is_merged = bool(used) and all(other.type == event.type for other in used)
        is_more = len(alike) > (1 if is_merged else len(used))
        return is_more and any(other.id in self.used for other in alike)

    def is_undone(self, used: Iterable[RecordedEvent]) -> bool:
        """Whether parts used by an activation are not done, or were lost."""
        events = list(used)
        about = self.analysis.about(events)
        return bool(difference(about, self.done)) or any(map(self.is_lost, events))

    def _is_undone(self, event: RecordedEvent) -> bool:
        """Whether parts of an event are not done.

        If it is silent about its parts, those count that its activation used and nothing else that
        it made is about.
        """
        about = self.analysis.about([event])
        by = self.analysis.run.activations.get(event.by or "")
        if not about and by is not None:
            used = self.analysis.parts_behind(event)
            siblings = [other for other in self.analysis.run.outputs(by) if other is not event]
            about = difference(used, self.analysis.about(siblings))
            if used and not about:
                return False
        return not about or bool(difference(about, self.done))

    @cached_property
    def answers(self) -> list[RecordedEvent]:
        """The accepted answers."""
        events = self.analysis.run.events.values()
        return [event for event in events if event.final and event.accepted_t is not None]

    @cached_property
    def used(self) -> frozenset[str]:
        """The used events, and events waiting for others at the end."""
        run = self.analysis.run
        consumed = (
            name
            for act in run.activations.values()
            if any(event.is_work or event.final for event in run.outputs(act))
            for name in act.with_fate("consume")
        )
        # After an answer nothing waits with reason: what is still there was left behind.
        waiting = () if self.answers else (event.id for event in self._waiting)
        return frozenset((*consumed, *waiting))

    @cached_property
    def _waiting(self) -> list[RecordedEvent]:
        """Work before agents at the end, of types with frequent delays."""
        run, parts = self.analysis.run, self.analysis.parts
        waiting = []
        for name, live in run.graph.live.items():
            event = run.events[name]
            if not live.copies or event.agent is None or not event.is_work:
                continue
            norm, question = self.analysis.norm_for(event.agent), ("fate", event.type)
            if norm.count(question, "delay") < max(WAITS * norm.answer_count(question), 1):
                continue
            collector = parts.report_to(event) if parts is not None else None
            if collector is None or collector in live.copies or collector in run.leaves:
                waiting.append(event)
        return waiting

    @cached_property
    def claimed(self) -> Ranges:
        """The parts in the answer or, without an answer, in waiting work."""
        waiting = (event for event in self._waiting if event.type == SOLUTION)
        return self.analysis.about(self.answers or waiting)

    @cached_property
    def done(self) -> Ranges:
        """The claimed parts with work on them by agents."""
        # A result of results is no work on raw data, and an answer may claim more than was done.
        worked = merge(
            part
            for event in self.analysis.sent
            if event.type == SOLUTION
            for part in intersection(
                self.analysis.about([event]), self.analysis.about(self._raw(event))
            )
        )
        return intersection(self.claimed, worked) if worked else self.claimed

    def _raw(self, event: RecordedEvent) -> list[RecordedEvent]:
        """The inputs of a result, other results left out."""
        return [used for used in self.analysis.inputs_behind(event) if used.type != SOLUTION]

    @cached_property
    def is_short(self) -> bool:
        """Whether the answer or parts of the task are missing; else the answer is wrong."""
        task = self.analysis.task_parts
        if not self.answers or task:
            return not self.answers or bool(difference(task, self.claimed))
        return any(map(self.is_lost, self.analysis.run.events.values()))

    @cached_property
    def _arrived_contents(self) -> frozenset[int]:
        return self._contents(e for e in self.analysis.run.events.values() if e.arrivals)

    @cached_property
    def _used_contents(self) -> frozenset[int]:
        return self._contents(map(self.analysis.run.events.__getitem__, self.used))

    def _contents(self, events: Iterable[RecordedEvent]) -> frozenset[int]:
        contents = map(self.analysis.payloads.content, events)
        return frozenset(content for content in contents if content is not None)
