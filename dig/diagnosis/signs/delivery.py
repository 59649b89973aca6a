"""Signs of messages: lost, late, to nobody, astray; and of agents that leave with their work."""

from __future__ import annotations

from collections.abc import Iterator

from dig._util.text import name, names
from dig.graph.records import NEVER_RAN, Expire, IncidentRow, Leave
from dig.tasks.accounting import SOLUTION

from .seen import Seen, Shown

LATE_S = 15.0
"""Seconds on its way from which on a message is late, unless more is usual."""


def lost(seen: Seen) -> Iterator[Shown]:
    """A message of an agent expired."""
    for record in seen.run.records:
        if isinstance(record, Expire):
            event = seen.run.events[record.event]
            if event.agent is not None:
                says = f"{name(event.id)} was sent by {name(event.agent)} and was lost on its way"
                yield Shown(
                    agent=event.agent, t=record.t, says=says, activation=event.by, event=event.id
                )


def to_nobody(seen: Seen) -> Iterator[Shown]:
    """No recipient of a message is an agent; one that has left is to blame itself."""
    for event in seen.sent:
        if not event.final and {*seen.run.agents}.isdisjoint(event.to):
            says = f"{name(event.id)} was sent to {names(event.to) or 'nobody'}: none is there"
            assert event.agent is not None
            yield Shown(
                agent=event.agent, t=event.t, says=says, activation=event.by, event=event.id
            )


def astray(seen: Seen) -> Iterator[Shown]:
    """A result went to other agents than the one to which it was to be reported."""
    for event in seen.sent if seen.parts is not None else ():
        assert seen.parts is not None and event.agent is not None
        wanted = seen.parts.report_to(event)
        here = seen.present[event.id]
        if (
            event.type == SOLUTION
            and not event.final
            and wanted in here - {*event.to}
            and here & {*event.to}
        ):
            says = f"{name(event.id)} was sent to {names(event.to)} and not to {name(wanted)}"
            yield Shown(
                agent=event.agent, t=event.t, says=says, activation=event.by, event=event.id
            )


def left(seen: Seen) -> Iterator[Shown]:
    """An agent left the team; not one that was only emptied, since it was never to run."""
    before = None
    for record in seen.run.records:
        is_emptied = isinstance(before, IncidentRow) and before.what == NEVER_RAN
        before = record
        if isinstance(record, Leave) and not is_emptied:
            yield Shown(agent=record.agent, t=record.t, says=f"{name(record.agent)} left the team")


def late(seen: Seen) -> Iterator[Shown]:
    """A message was on its way for long, or still is in the end, to an agent that is present."""
    gone = {one.event for one in seen.run.records if isinstance(one, Expire)}
    for event in seen.sent:
        if event.final or event.reroutes or event.id in gone or not event.to:
            continue
        assert event.agent is not None
        arrived = event.arrivals[0][1] if event.arrivals else None
        if arrived is None and all(
            to in seen.run.leaves or to not in seen.run.agents for to in event.to
        ):
            continue
        took = seen.seconds(event.us, None if arrived is None else seen.run.times[arrived])
        usual = seen.unlike(event.agent).most(("way", event.type)) or 0.0
        if took > max(LATE_S, usual):
            how = f"arrived after {took:.0f} s" if arrived else f"was on its way for {took:.0f} s"
            yield Shown(
                agent=event.agent, t=event.t, says=f"{name(event.id)} {how}",
                activation=event.by, event=event.id,
            )  # fmt: skip
