"""WorkDone: which events of a run led to its answer, and which led nowhere.

A failure is work that led nowhere, or an answer that was made of spoilt work. So a sign counts if
the work that it is about led nowhere or, if what was made is at fault, if that was used.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from json import dumps

from dig.diagnosis.signs.seen import Seen
from dig.tasks.accounting import SOLUTION
from dig.tasks.ranges import Ranges, both, merged, without
from dig.traces.run import RecordedEvent

WAITS = 0.1
"""Work of a type may wait for other work if peers delay it with this share."""


class WorkDone:
    """The events of a run that led to its answer or, without one, wait to be put together.

    Attributes:
        seen: The run.
    """

    def __init__(self, seen: Seen) -> None:
        """Walk back nothing yet."""
        self.seen = seen

    def is_lost(self, event: RecordedEvent) -> bool:
        """Whether the way of some work ends with this event: nothing was made of it, nor of another
        event with its content, and its parts of the task are not done in another way. Of one that
        did not arrive: no other one with its content did."""
        if event.id in self.used or _content(event) in self._contents:
            return False
        if not event.arrivals and _content(event) in self._arrived:
            return False
        if self.seen.parts is None and self._has_used_copy(event):
            return False
        return self._undone(event)

    def _has_used_copy(self, event: RecordedEvent) -> bool:
        """Whether something was made of another event of its type, to the same agents, of which its
        activation generated more than it consumed: where contents tell nothing, one is a copy."""
        by = self.seen.run.activations.get(event.by or "")
        made = self.seen.run.outputs(by) if by is not None else []
        alike = [one for one in made if (one.type, one.to) == (event.type, event.to)]
        used = self.seen.used_by(event)
        is_merged = bool(used) and all(one.type == event.type for one in used)
        is_more = len(alike) > (1 if is_merged else len(used))
        return is_more and any(one.id in self.used for one in alike)

    def is_undone(self, used: Iterable[RecordedEvent]) -> bool:
        """Whether parts are not done that an activation has used, or nothing was made of them."""
        events = list(used)
        about = self.seen.about(events)
        return bool(without(about, self.done)) or any(map(self.is_lost, events))

    def _undone(self, event: RecordedEvent) -> bool:
        """Whether parts are not done that an event is about or, if it is silent about them, that
        its activation used and nothing else that it made is about."""
        about = self.seen.about([event])
        by = self.seen.run.activations.get(event.by or "")
        if not about and by is not None:
            used = self.seen.about_used(event)
            others = [one for one in self.seen.run.outputs(by) if one is not event]
            about = without(used, self.seen.about(others))
            if used and not about:
                return False
        return not about or bool(without(about, self.done))

    @cached_property
    def answers(self) -> list[RecordedEvent]:
        """The answers that were accepted."""
        return [e for e in self.seen.run.events.values() if e.final and e.accepted_t is not None]

    @cached_property
    def used(self) -> frozenset[str]:
        """The events of which something was made, and those that wait for others at the end."""
        run = self.seen.run
        made = (
            name
            for one in run.activations.values()
            if any(event.is_work or event.final for event in run.outputs(one))
            for name in one.with_fate("consume")
        )
        waiting = () if self.answers else (one.id for one in self._waiting)
        return frozenset((*made, *waiting))

    @cached_property
    def _waiting(self) -> list[RecordedEvent]:
        """Work before agents at the end, of types that often wait for other work."""
        run = self.seen.run
        return [
            run.events[name]
            for name, live in run.graph.live.items()
            if live.copies
            and run.events[name].agent is not None
            and self._may_wait(run.events[name])
            and self._is_where_it_belongs(run.events[name], live.copies)
        ]

    def _is_where_it_belongs(self, event: RecordedEvent, holders: Iterable[str]) -> bool:
        wanted = self.seen.parts.report_to(event) if self.seen.parts is not None else None
        return wanted is None or wanted in holders or wanted in self.seen.run.leaves

    def _may_wait(self, event: RecordedEvent) -> bool:
        assert event.agent is not None
        fates = self.seen.unlike(event.agent).words.get(("fate", event.type))
        return event.is_work and fates is not None and fates["delay"] >= WAITS * fates.total()

    @cached_property
    def claimed(self) -> Ranges:
        """The parts that the answer or, without one, the work that waits says to be about."""
        waiting = (one for one in self._waiting if one.type == SOLUTION)
        return self.seen.about(self.answers or waiting)

    @cached_property
    def done(self) -> Ranges:
        """The claimed parts that were worked on."""
        worked = merged(
            part
            for one in self.seen.sent
            if one.type == SOLUTION
            for part in both(self.seen.about([one]), self.seen.about(self._raw(one)))
        )
        return both(self.claimed, worked) if worked else self.claimed

    def _raw(self, event: RecordedEvent) -> list[RecordedEvent]:
        """The inputs that a result was made of, other results left out."""
        return [one for one in self.seen.used_by(event) if one.type != SOLUTION]

    @cached_property
    def is_short(self) -> bool:
        """Whether there is no answer, or one that lacks parts of the task; else it is wrong."""
        whole = self.seen.whole
        if not self.answers or whole:
            return not self.answers or bool(without(whole, self.claimed))
        return any(map(self.is_lost, self.seen.run.events.values()))

    @cached_property
    def _arrived(self) -> frozenset[tuple[str, str]]:
        arrived = (one for one in self.seen.run.events.values() if one.arrivals)
        return frozenset(found for one in arrived if (found := _content(one)) is not None)

    @cached_property
    def _contents(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            content
            for name in self.used
            if (content := _content(self.seen.run.events[name])) is not None
        )


def _content(event: RecordedEvent) -> tuple[str, str] | None:
    if event.payload is None or event.agent is None:
        return None
    return event.type, dumps(event.payload, sort_keys=True, default=str)
