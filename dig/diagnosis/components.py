"""Which components a record is about: what evidence for a claim may point at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dig.graph.records import (
    NOTICE,
    SYSTEM,
    Deliver,
    Emit,
    End,
    Expire,
    FindingRow,
    Finish,
    HealRow,
    Join,
    Leave,
    Record,
    Redirect,
    Run,
    Start,
)

from .causes import OUTCOME, TASK


def concerned(records: Iterable[Record]) -> tuple[frozenset[str], ...]:
    """The components that each record is about, in the order of the records.

    An activation is about its agent; an event about who generated it and whom it goes to, its way
    about who generated it and who is given it. Work from outside or for others is about the `task`
    too; a final event and the end of the run about the `outcome`; a finding about the `outcome` and
    all that its subject and evidence name. The header names everybody, and is about nobody.
    """
    reader = _Reader()
    return tuple(frozenset(reader.of(record)) for record in records)


def blamed(records: Iterable[Record]) -> Iterator[tuple[FindingRow, tuple[str, ...]]]:
    """Each finding with the agents that its subject names or, where it names none, its evidence."""
    reader = _Reader()
    for record in records:
        for _ in reader.of(record):
            pass
        if isinstance(record, FindingRow):
            agents = [*reader.named(record.subject)] or [*reader.named(record.evidence)]
            yield record, tuple(dict.fromkeys(agents))


class _Reader:
    """Reads records in their order, and knows who is behind the ids that came so far."""

    def __init__(self) -> None:
        self._agent_of: dict[str, str] = {}
        """The agent of an activation, the generator of an event, and an agent itself, by id."""
        self._also: dict[str, frozenset[str]] = {}
        """What else than agents an event is about."""

    def of(self, record: Record) -> Iterator[str]:
        """The components that the next record is about."""
        match record:
            case Run(agents=agents):
                self._agent_of.update(zip(agents, agents, strict=True))
            case Emit():
                yield from self._emitted(record)
            case Deliver(event=event, to=to):
                yield from self._about(event, (to,) if to else ())
            case Redirect(event=event, to=to):
                yield from self._about(event, to)
            case Expire(event=event):
                yield from self._about(event, ())
            case Start(activation=activation, agent=agent):
                self._agent_of[activation] = agent
                yield agent
            case End(activation=activation, fates=fates):
                yield self._agent_of[activation]
                for fate in fates:
                    yield from fate.to
            case Join(agent=agent) | Leave(agent=agent):
                self._agent_of[agent] = agent
                yield agent
            case FindingRow(subject=subject, evidence=evidence):
                yield from self.named((subject, evidence))
                yield OUTCOME
            case HealRow(event=event, to=to):
                yield from self._about(event, to or ())
            case Finish():
                yield OUTCOME

    def _emitted(self, record: Emit) -> Iterator[str]:
        if record.by in self._agent_of:
            self._agent_of[record.event] = self._agent_of[record.by]
        also = {OUTCOME} if record.final else set()
        if record.by != SYSTEM and record.type != NOTICE:
            also.add(TASK)
        self._also[record.event] = frozenset(also)
        yield from self._about(record.event, record.to)

    def _about(self, event: str | None, others: Sequence[str]) -> Iterator[str]:
        yield from self.named(event)
        yield from self._also.get(event or "", ())
        yield from others

    def named(self, value: Any) -> Iterator[str]:
        """The agents behind all ids that stand in a value."""
        if isinstance(value, str):
            if value in self._agent_of:
                yield self._agent_of[value]
        elif isinstance(value, dict):
            for key, inner in value.items():
                yield from self.named(key)
                yield from self.named(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                yield from self.named(inner)
