"""The components of each record: evidence for a claim may point at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dig.graph import records as kinds
from dig.graph.records import FindingRow, Record
from dig.traces.run import RecordedRun

from .causes import OUTCOME, TASK


def record_components(run: RecordedRun) -> tuple[frozenset[str], ...]:
    """List the components of each record, in the order of the records.

    An activation is about its agent; an event about who generated it and whom it goes to, its way
    about who generated it and who is given it. Work from outside or for others is about the `task`
    too; a final event and the end of the run about the `outcome`; a finding about the `outcome` and
    all that its subject and evidence name. The header names everybody, and is about nobody.
    """
    return tuple(frozenset(_components(run, record)) for record in run.records)


def blamed_agents(run: RecordedRun) -> Iterator[tuple[FindingRow, tuple[str, ...]]]:
    """Yield each finding with the agents in the subject or else in the evidence."""
    for row in run.findings:
        agents = [*_agents_in(run, row.subject)] or [*_agents_in(run, row.evidence)]
        yield row, tuple(dict.fromkeys(agents))


def _components(run: RecordedRun, record: Record) -> Iterator[str]:
    match record:
        case kinds.Emit(event=event, to=to) | kinds.Redirect(event=event, to=to):
            yield from (*_of_event(run, event), *to)
        case kinds.Deliver(event=event, to=agent):
            yield from (*_of_event(run, event), *([agent] if agent else ()))
        case kinds.Expire(event=event):
            yield from _of_event(run, event)
        case kinds.HealRow(event=event, to=agents):
            yield from (*(_of_event(run, event) if event else ()), *(agents or ()))
        case kinds.End(activation=activation, fates=fates):
            yield run.activations[activation].agent
            for fate in fates:
                yield from fate.to
        case kinds.Start(agent=agent) | kinds.Join(agent=agent) | kinds.Leave(agent=agent):
            yield agent
        case FindingRow(subject=subject, evidence=evidence):
            yield from _agents_in(run, (subject, evidence))
            yield OUTCOME
        case kinds.Finish():
            yield OUTCOME


def _of_event(run: RecordedRun, name: str) -> Iterator[str]:
    event = run.events[name]
    if event.agent is not None:
        yield event.agent
    if event.final:
        yield OUTCOME
    if event.by != kinds.SYSTEM and event.type != kinds.NOTICE:
        yield TASK


def _agents_in(run: RecordedRun, value: Any) -> Iterator[str]:
    """The agents behind all ids in a value."""
    if isinstance(value, str):
        agent = run.agent_of(value)
        if agent is not None:
            yield agent
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _agents_in(run, key)
            yield from _agents_in(run, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _agents_in(run, inner)
