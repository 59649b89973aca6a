"""Signs of messages: lost, late, to nobody, astray; and of leaving agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dig._util.text import name, names
from dig.graph.records import NEVER_RAN, Leave
from dig.tasks.accounting import SOLUTION

from .analysis import Occurrence, RunAnalysis

LATE_S = 15.0
"""Seconds on its way from which on a message is late, unless more is usual."""


def find_expired(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """A message of an agent expired."""
    for record in analysis.run.expired:
        event = analysis.run.events[record.event]
        if event.agent is not None:
            says = f"{name(event.id)} was sent by {name(event.agent)} and was lost on its way"
            yield Occurrence.at_event(event, says, t=record.t)


def find_unaddressed(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """No recipient of a message is an agent; messages to agents after leaving do not count."""
    for event in analysis.sent:
        if not event.final and analysis.run.agents.keys().isdisjoint(event.to):
            says = f"{name(event.id)} was sent to {names(event.to) or 'nobody'}: none is there"
            if isinstance(event.payload, Mapping) and "handoff" in event.payload:
                to = name(event.payload["handoff"])
                says = f"{name(event.agent)} handed over to {to}, too, which was dropped"
            yield Occurrence.at_event(event, says)


def find_misreported(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """A result went to other agents than the collector of results."""
    if analysis.parts is None:
        return
    for event in analysis.sent:
        if event.type != SOLUTION or event.final:
            continue
        collector, present = analysis.parts.report_to(event), analysis.present_at(event.t)
        if collector in present and collector not in event.to and present & {*event.to}:
            says = f"{name(event.id)} was sent to {names(event.to)} and not to {name(collector)}"
            yield Occurrence.at_event(event, says)


def find_leaving(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An agent left the team, and had run before."""
    # The host empties an agent that was never to run, and says so in the record before.
    emptied = {row.t + 1 for row in analysis.run.incidents if row.what == NEVER_RAN}
    for record in analysis.run.membership:
        if isinstance(record, Leave) and record.t not in emptied:
            says = f"{name(record.agent)} left the team"
            yield Occurrence(agent=record.agent, t=record.t, says=says)


def find_late(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """A message to a present agent was under way for long, or still is."""
    run = analysis.run
    expired = {record.event for record in run.expired}
    for event in analysis.sent:
        if event.final or event.reroutes or event.id in expired or not event.to:
            continue
        assert event.agent is not None
        arrived = event.arrivals[0][1] if event.arrivals else None
        if arrived is None and all(to in run.leaves or to not in run.agents for to in event.to):
            continue
        seconds = analysis.seconds(event.us, None if arrived is None else run.times[arrived])
        usual = analysis.norm_for(event.agent).maximum(("way", event.type))
        if seconds > max(LATE_S, usual):
            verb = "arrived after" if arrived else "was on its way for"
            yield Occurrence.at_event(event, f"{name(event.id)} {verb} {seconds:.0f} s")
