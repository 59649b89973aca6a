"""Recorded acts of delivery policies: the events kept, and until when.

A policy is code, which is not recorded. But each of its acts is a record (`deliver`, `redirect`,
`expire`), so a replay does these at their places. A journal names its policies, so an event without
one was kept by none. A plain trace may not name them: then an event with a recipient is known to be
kept if it is not delivered in the request that generated it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from dig.graph import records
from dig.graph.records import Deliver, Emit, Expire, Record, Redirect
from dig.monitor.monitor import RELEASED
from dig.monitor.policies import Act, AsRecorded, RecordedStep

_A_WHILE_US = 1_000_000


@dataclass
class _PolicyEvent:
    """An event, possibly kept by its policy.

    `is_kept` is ``None`` until the request that generated the event is over.
    `is_free`: no policy can have kept the event.
    """

    emit: Emit
    flight: set[str]
    is_free: bool
    is_kept: bool | None = None
    arrives: bool = True
    steps: list[RecordedStep] = field(default_factory=list)


class RecordedPolicies:
    """The acts of the delivery policies of a recorded run.

    Attributes:
        acts: The numbers of the records that are acts of policies.
    """

    def __init__(self, run: Iterable[Record], *, are_named: bool) -> None:
        """Read a run.

        Args:
            run: All records of the run.
            are_named: Whether each event that had a policy names it.
        """
        self._are_named = are_named
        self.acts: set[int] = set()
        self._events: dict[str, _PolicyEvent] = {}
        self._request: dict[str, _PolicyEvent] = {}  # generated in the current one, in order
        self._present: set[str] = set()
        self._before: Record | None = None
        self._waits = self._has_acted = self._has_delivered = False  # in the current request
        for record in run:
            if self._before is not None and _begins_request(record, self._before):
                self._close_request(record)
            self._take(record)
            self._before = record
        for event in self._request.values():  # of the last request, if the run stopped after it
            if event.is_kept is None and event.emit.policy is not None:
                event.is_kept, event.arrives = bool(event.flight), not event.flight

    def of(self, emit: Emit, omitted: Collection[int] = ()) -> AsRecorded | None:
        """The recorded policy of an event, as far as known; ``None``: the event had none.

        Args:
            emit: The record of the event.
            omitted: The records of acts that are not to be done again. An event that is not
                called back arrives instead.
        """
        event = self._events.get(emit.event)
        if event is None:
            return None
        steps = tuple(
            replace(step, does="deliver") if step.t in omitted and step.does == "expire" else step
            for step in event.steps
            if step.t not in omitted or step.does == "expire"
        )
        return AsRecorded(emit.policy, event.arrives, steps)

    # --- records ---

    def _take(self, record: Record) -> None:
        event: _PolicyEvent | None
        match record:
            case records.Run():
                self._present = {*record.agents}
            case records.Join():
                self._present.add(record.agent)
            case records.Leave():
                self._present.discard(record.agent)
                for event in self._events.values():
                    event.flight.discard(record.agent)
            case Emit(final=False) if record.by != records.SYSTEM:
                is_free = self._are_named and record.policy is None
                event = _PolicyEvent(record, {*record.to} & self._present, is_free)
                self._events[record.event] = self._request[record.event] = event
            case Deliver(to=str(to)) if event := self._events.get(record.event):
                self._deliver(record, event, to)
            case Redirect() if event := self._events.get(record.event):
                # Without a policy, and without healing before, a host has redirected the event.
                before = self._before
                is_healed = isinstance(before, records.HealRow) and before.event == record.event
                if event.emit.policy is not None and not is_healed:
                    self._add_step(record, event, "redirect", record.to)
                event.is_kept, event.flight = False, {*record.to} & self._present
            case Expire() if event := self._events.get(record.event):
                self._add_step(record, event, "expire")
            case records.HealRow():  # after the first round of deliveries come acts of policies
                self._has_acted |= self._has_delivered
            case records.End():
                for fate in record.fates:
                    if fate.fate == "reroute" and fate.event in self._events:
                        self._events[fate.event].is_kept = False
            case records.IncidentRow():
                self._waits |= record.what == records.WAITS
                if event := self._events.get(released_event(record) or ""):
                    event.arrives &= event.is_kept is not None
                    event.is_kept = False
            case records.Finish():
                self._finish(record)
            case _:
                pass

    def _deliver(self, record: Deliver, event: _PolicyEvent, to: str) -> None:
        if event.is_kept is None:
            # Events are delivered in their order, so a later one that has arrived, or an act of a
            # policy, tells that this one was kept at first.
            later = [*self._request][[*self._request].index(record.event) + 1 :]
            event.arrives = event.is_free or not (
                self._has_acted or any(self._request[name].is_kept is False for name in later)
            )
            event.is_kept = not event.arrives
        if event.is_kept:
            self._add_step(record, event, "deliver")
        event.flight.discard(to)
        self._has_delivered = True

    def _add_step(
        self, record: Deliver | Redirect | Expire, event: _PolicyEvent, act: Act,
        to: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        if event.is_kept is None:
            event.arrives = False
        event.steps.append(RecordedStep(record.t, record.us, act, to))
        event.is_kept = False
        self.acts.add(record.t)
        self._has_acted = True

    # --- requests ---

    def _close_request(self, record: Record) -> None:
        """End a request: events not delivered by now are kept."""
        before = self._before
        ends_run = isinstance(record, records.Finish) and before and record.us == before.us
        is_sure = not (self._waits or ends_run)
        for name, event in self._request.items():
            if event.is_kept is None:
                is_kept = is_sure or event.emit.policy is not None
                event.is_kept = is_kept and bool(event.flight) and not event.is_free
                event.arrives = not event.is_kept
            if event.arrives and event.emit.policy is None:
                del self._events[name]
        self._request = {}
        self._waits = self._has_acted = self._has_delivered = False

    def _finish(self, record: records.Finish) -> None:
        # The run did not end before, since steps of policies were still planned.
        if record.outcome == "stopped":
            end = RecordedStep(record.t, record.us, "nothing")
        elif record.outcome == "timeout":
            end = RecordedStep(record.t + 1, record.us + _A_WHILE_US, "nothing")
        else:
            return
        for event in self._events.values():
            if event.is_kept:
                event.steps.append(end)


def released_event(record: records.IncidentRow) -> str | None:
    """The event released by a person, if the incident is about a release."""
    event = record.detail.get("event") if isinstance(record.detail, dict) else None
    return event if record.what == RELEASED and isinstance(event, str) else None


def _begins_request(record: Record, before: Record) -> bool:
    if isinstance(record, records.Leave) and isinstance(before, records.HealRow):
        return False
    begins = records.Start | records.End | records.Join | records.Leave | records.Finish
    if record.us != before.us or isinstance(record, begins):
        return True
    return isinstance(record, Emit) and record.by is None
