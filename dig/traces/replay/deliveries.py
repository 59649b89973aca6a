"""The deeds of delivery policies in a recorded run: which events they kept, and until when.

A policy is code, which is not recorded. But each of its acts is a record (`deliver`, `redirect`,
`expire`), so a replay does these at their places. A journal names its policies, so an event without
one was kept by none. A plain trace may not name them: then an event with a recipient is known to be
kept if it is not delivered in the request that generated it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from dig.graph.records import (
    SYSTEM,
    WAITS,
    Deliver,
    Emit,
    End,
    Expire,
    Finish,
    HealRow,
    IncidentRow,
    Join,
    Leave,
    Record,
    Redirect,
    Run,
    Start,
)
from dig.monitor.monitor import RELEASED
from dig.monitor.policies import Act, AsRecorded, RecordedStep

_A_WHILE_US = 1_000_000


@dataclass
class _Followed:
    """One event: `kept` is ``None`` until its first request is over.

    `is_free`: no policy can have kept it.
    """

    emit: Emit
    flight: set[str]
    is_free: bool
    kept: bool | None = None
    arrives: bool = True
    steps: list[RecordedStep] = field(default_factory=list)


class RecordedPolicies:
    """The acts of the delivery policies of a recorded run.

    Attributes:
        acts: The numbers of the records that are acts of policies.
    """

    def __init__(self, records: Iterable[Record], *, are_named: bool) -> None:
        """Read a run.

        Args:
            records: Its records.
            are_named: Whether each event that had a policy names it.
        """
        self._are_named = are_named
        self.acts: set[int] = set()
        self._events: dict[str, _Followed] = {}
        self._request: dict[str, _Followed] = {}  # generated in the current one, in order
        self._present: set[str] = set()
        self._before: Record | None = None
        self._waits = self._has_acted = self._has_delivered = False  # in the current request
        for record in records:
            if self._before is not None and _begins_request(record, self._before):
                self._close(record)
            self._take(record)
            self._before = record

    def of(self, emit: Emit, left_out: Collection[int] = ()) -> AsRecorded | None:
        """The policy of an event, as far as it is known; ``None``: it had none.

        Args:
            emit: The record of the event.
            left_out: The records of acts that are not to be done again. An event that is not
                called back arrives instead.
        """
        found = self._events.get(emit.event)
        if found is None:
            return None
        steps = tuple(
            replace(step, does="deliver") if step.t in left_out and step.does == "expire" else step
            for step in found.steps
            if step.t not in left_out or step.does == "expire"
        )
        return AsRecorded(emit.policy, found.arrives, steps)

    # --- records ---

    def _take(self, record: Record) -> None:
        match record:
            case Run():
                self._present = {*record.agents}
            case Join():
                self._present.add(record.agent)
            case Leave():
                self._present.discard(record.agent)
                for one in self._events.values():
                    one.flight.discard(record.agent)
            case Emit():
                self._emit(record)
            case Deliver() if record.event in self._events and record.to is not None:
                self._deliver(record, self._events[record.event], record.to)
            case Redirect() if record.event in self._events:
                self._redirect(record, self._events[record.event])
            case Expire() if record.event in self._events:
                self._act(record, self._events[record.event], "expire")
            case HealRow():  # after the first round of deliveries comes what policies do
                self._has_acted |= self._has_delivered
            case End():
                for fate in record.fates:
                    if fate.fate == "reroute" and fate.event in self._events:
                        self._events[fate.event].kept = False
            case IncidentRow():
                self._waits |= record.what == WAITS
                if freed := self._events.get(released(record) or ""):
                    freed.arrives &= freed.kept is not None
                    freed.kept = False
            case Finish():
                self._finish(record)
            case _:
                pass

    def _emit(self, record: Emit) -> None:
        if not record.final and record.by != SYSTEM:
            is_free = self._are_named and record.policy is None
            one = _Followed(record, {*record.to} & self._present, is_free)
            self._events[record.event] = self._request[record.event] = one

    def _deliver(self, record: Deliver, one: _Followed, to: str) -> None:
        if one.kept is None:
            later = [*self._request][[*self._request].index(record.event) + 1 :]
            one.arrives = one.is_free or not (
                self._has_acted or any(self._request[name].kept is False for name in later)
            )
            one.kept = not one.arrives
        if one.kept:
            self._act(record, one, "deliver")
        one.flight.discard(to)
        self._has_delivered = True

    def _redirect(self, record: Redirect, one: _Followed) -> None:
        before = self._before
        is_healed = isinstance(before, HealRow) and before.event == record.event
        if one.emit.policy is not None and not is_healed:  # else a host has redirected it
            self._act(record, one, "redirect", record.to)
        one.kept, one.flight = False, {*record.to} & self._present

    def _act(
        self, record: Deliver | Redirect | Expire, one: _Followed, does: Act,
        to: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        if one.kept is None:
            one.arrives = False
        one.steps.append(RecordedStep(record.t, record.us, does, to))
        one.kept = False
        self.acts.add(record.t)
        self._has_acted = True

    # --- requests ---

    def _close(self, record: Record) -> None:
        """A request is over: what was not delivered in it is kept."""
        before = self._before
        ends_it = isinstance(record, Finish) and before is not None and record.us == before.us
        is_sure = not (self._waits or ends_it)
        for name, one in self._request.items():
            if one.kept is None:
                is_kept = is_sure or one.emit.policy is not None
                one.kept = is_kept and bool(one.flight) and not one.is_free
                one.arrives = not one.kept
            if one.arrives and one.emit.policy is None:
                del self._events[name]
        self._request = {}
        self._waits = self._has_acted = self._has_delivered = False

    def _finish(self, record: Finish) -> None:
        """Steps that were still planned kept the run from ending before."""
        if record.outcome == "stopped":
            end = RecordedStep(record.t, record.us, "nothing")
        elif record.outcome == "timeout":
            end = RecordedStep(record.t + 1, record.us + _A_WHILE_US, "nothing")
        else:
            return
        for one in self._events.values():
            if one.kept:
                one.steps.append(end)


def released(record: IncidentRow) -> str | None:
    """The event that a person has released, if the incident is about that."""
    event = record.detail.get("event") if isinstance(record.detail, dict) else None
    return event if record.what == RELEASED and isinstance(event, str) else None


def _begins_request(record: Record, before: Record) -> bool:
    if isinstance(record, Leave) and isinstance(before, HealRow):
        return False
    if record.us != before.us or isinstance(record, Start | End | Join | Leave | Finish):
        return True
    return isinstance(record, Emit) and record.by is None
